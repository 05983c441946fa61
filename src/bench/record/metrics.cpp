#include "bench/record/metrics.h"

#include <algorithm>
#include <array>

namespace longca {
namespace {

constexpr std::array kMetrics = {
    MetricInfo{"time_ms", "ms", "median time of a repetition", OverRounds::mean},
    MetricInfo{"time_ci_pct", "%", "half-width of the 95 % confidence interval of the median time",
               OverRounds::mean},
    MetricInfo{"tflops", "TFLOP/s", "FLOPs of the allowed cells divided by time_ms",
               OverRounds::mean},
    MetricInfo{"area", "cells", "allowed (query, key) cells of the mask per query head",
               OverRounds::mean},
    MetricInfo{"plan_ms", "ms", "preparation from the mask before the first run", OverRounds::mean},
    MetricInfo{"compile_ms", "ms", "compiling the kernel for this shape; absent where it was ready",
               OverRounds::max},
    MetricInfo{"selection_ms", "ms", "median time of choosing the blocks by their scores",
               OverRounds::median},
    MetricInfo{"end_to_end_ms", "ms", "selection_ms + plan_ms + time_ms", OverRounds::mean},
    MetricInfo{"compute_ms", "ms", "median time of the slowest rank's steps without exchanges",
               OverRounds::median},
    MetricInfo{"exposed_comm_ms", "ms", "time_ms − compute_ms: communication that nothing hides",
               OverRounds::median, true},
    MetricInfo{"scheme_plan_ms", "ms", "of plan_ms, the scheme's own plan; the slowest rank's",
               OverRounds::mean},
    MetricInfo{"bytes_sent", "bytes", "sent in one pass by the rank that sends most, as counted",
               OverRounds::mean},
    MetricInfo{"bytes_formula", "bytes", "the same by the scheme's closed formula",
               OverRounds::mean},
    MetricInfo{"bytes_least", "bytes",
               "what ranks must receive in one pass if queries stay in place, mean over ranks",
               OverRounds::mean},
    MetricInfo{"imbalance", "ratio", "allowed cells that a rank computes, largest over mean",
               OverRounds::mean},
    MetricInfo{"time_imbalance", "ratio",
               "time of a rank's steps without exchanges, largest over mean", OverRounds::mean},
    MetricInfo{"padding_tokens", "tokens",
               "rows of padding over all ranks: they travel, unattended", OverRounds::mean},
    MetricInfo{"peak_bytes", "bytes",
               "peak memory of the case: inputs, outputs, plan and workspace", OverRounds::max},
    MetricInfo{"workspace_bytes", "bytes", "memory of the plan beside inputs and outputs",
               OverRounds::max},
    MetricInfo{"device_bytes", "bytes",
               "what the GPU's used memory grew by through plan and passes, by the driver's count",
               OverRounds::max},
    MetricInfo{"error_o", "relative", "‖O − reference‖ / ‖reference‖ over what was compared",
               OverRounds::max},
    MetricInfo{"error_lse", "absolute", "largest |LSE − reference|, natural logarithm",
               OverRounds::max},
    MetricInfo{"error_dq", "relative", "‖dQ − reference‖ / ‖reference‖ over what was compared",
               OverRounds::max},
    MetricInfo{"error_dk", "relative", "‖dK − reference‖ / ‖reference‖ over what was compared",
               OverRounds::max},
    MetricInfo{"error_dv", "relative", "‖dV − reference‖ / ‖reference‖ over what was compared",
               OverRounds::max},
    MetricInfo{"error_dsink", "relative",
               "‖dsink − reference‖ / ‖reference‖ over the heads that were compared",
               OverRounds::max},
    MetricInfo{"verified_fraction", "fraction", "share of the output elements that were compared",
               OverRounds::mean},
    MetricInfo{"kept_mass", "fraction",
               "share of the full attention's probability that kept blocks hold, of drawn rows",
               OverRounds::mean},
    MetricInfo{"error_full", "relative",
               "‖O − O of full attention‖ / ‖O of full attention‖ over the same rows",
               OverRounds::mean},
    MetricInfo{"sm_clock_mhz", "MHz", "median clock of the GPU's SMs while timing",
               OverRounds::mean},
    MetricInfo{"power_w", "W", "mean power of the GPU while timing", OverRounds::mean},
    MetricInfo{"temperature_c", "°C", "highest temperature of the GPU while timing",
               OverRounds::max},
    MetricInfo{"gpu_processes", "processes",
               "with a context on the GPU while timing, the kernel's own included",
               OverRounds::mean},
    MetricInfo{"host_load", "cores", "kept busy by other processes while timing, on average",
               OverRounds::mean},
};

}  // namespace

std::span<const MetricInfo> metric_table() {
  return kMetrics;
}

const MetricInfo* find_metric(std::string_view name) {
  const auto* found = std::find_if(kMetrics.begin(), kMetrics.end(),
                                   [&](const MetricInfo& metric) { return metric.name == name; });
  return found == kMetrics.end() ? nullptr : found;
}

}  // namespace longca
