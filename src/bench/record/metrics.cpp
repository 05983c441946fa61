#include "bench/record/metrics.h"

#include <algorithm>
#include <array>

namespace longca {
namespace {

constexpr std::array kMetrics = {
    MetricInfo{"time_ms", "ms", "median time of a repetition", false},
    MetricInfo{"time_ci_pct", "%", "half-width of the 95 % confidence interval of the median time",
               false},
    MetricInfo{"tflops", "TFLOP/s", "FLOPs of the allowed cells divided by time_ms", true},
    MetricInfo{"area", "cells", "allowed (query, key) cells of the mask per query head", true},
    MetricInfo{"plan_ms", "ms", "preparation from the mask before the first run", false},
    MetricInfo{"compile_ms", "ms", "compiling the kernel for this shape; absent where it was ready",
               false},
    MetricInfo{"selection_ms", "ms", "median time of choosing the blocks by their scores", false},
    MetricInfo{"end_to_end_ms", "ms", "selection_ms + plan_ms + time_ms", false},
    MetricInfo{"compute_ms", "ms", "median time of the slowest rank's steps without exchanges",
               false},
    MetricInfo{"exposed_comm_ms", "ms", "time_ms − compute_ms: communication that nothing hides",
               false, true},
    MetricInfo{"scheme_plan_ms", "ms", "of plan_ms, the scheme's own plan; the slowest rank's",
               false},
    MetricInfo{"bytes_sent", "bytes", "sent in one pass by the rank that sends most, as counted",
               false},
    MetricInfo{"bytes_formula", "bytes", "the same by the scheme's closed formula", false},
    MetricInfo{"bytes_least", "bytes",
               "what ranks must receive in one pass if queries stay in place, mean over ranks",
               false},
    MetricInfo{"imbalance", "ratio", "allowed cells that a rank computes, largest over mean",
               false},
    MetricInfo{"time_imbalance", "ratio",
               "time of a rank's steps without exchanges, largest over mean", false},
    MetricInfo{"padding_tokens", "tokens",
               "rows of padding over all ranks: they travel, unattended", false},
    MetricInfo{"peak_bytes", "bytes",
               "peak memory of the case: inputs, outputs, plan and workspace", false},
    MetricInfo{"workspace_bytes", "bytes", "memory of the plan beside inputs and outputs", false},
    MetricInfo{"device_bytes", "bytes",
               "what the GPU's used memory grew by through plan and passes, by the driver's count",
               false},
    MetricInfo{"error_o", "relative", "‖O − reference‖ / ‖reference‖ over what was compared",
               false},
    MetricInfo{"error_lse", "absolute", "largest |LSE − reference|, natural logarithm", false},
    MetricInfo{"error_dq", "relative", "‖dQ − reference‖ / ‖reference‖ over what was compared",
               false},
    MetricInfo{"error_dk", "relative", "‖dK − reference‖ / ‖reference‖ over what was compared",
               false},
    MetricInfo{"error_dv", "relative", "‖dV − reference‖ / ‖reference‖ over what was compared",
               false},
    MetricInfo{"error_dsink", "relative",
               "‖dsink − reference‖ / ‖reference‖ over the heads that were compared", false},
    MetricInfo{"verified_fraction", "fraction", "share of the output elements that were compared",
               true},
    MetricInfo{"kept_mass", "fraction",
               "share of the full attention's probability that kept blocks hold, of drawn rows",
               true},
    MetricInfo{"error_full", "relative",
               "‖O − O of full attention‖ / ‖O of full attention‖ over the same rows", false},
    MetricInfo{"sm_clock_mhz", "MHz", "median clock of the GPU's SMs while timing", true},
    MetricInfo{"power_w", "W", "mean power of the GPU while timing", false},
    MetricInfo{"temperature_c", "°C", "highest temperature of the GPU while timing", false},
    MetricInfo{"gpu_processes", "processes",
               "with a context on the GPU while timing, the kernel's own included", false},
    MetricInfo{"host_load", "cores", "kept busy by other processes while timing, on average",
               false},
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
