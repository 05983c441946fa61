#include "bench/cell_notes.h"

#include <optional>
#include <utility>

namespace longca {

void note_verdict(const Verdict& verdict, Record& record) {
  const std::pair<const char*, const std::optional<double>*> errors[] = {
      {"error_o", &verdict.error_o},
      {"error_lse", &verdict.error_lse},
      {"error_dq", &verdict.error_dq},
      {"error_dk", &verdict.error_dk},
      {"error_dv", &verdict.error_dv}};
  for (const auto& [name, value] : errors) {
    if (*value) record.metrics[name] = **value;
  }
  record.metrics["verified_fraction"] = verdict.fraction;
}

void note_measurement(const Measurement& measured, double flops, Record& record) {
  record.metrics["time_ms"] = measured.median_ms;
  record.metrics["tflops"] = flops / measured.median_ms / 1e9;
  if (measured.interval) {
    record.metrics["time_ci_pct"] = measured.interval->relative_half_width() * 100;
  }
  if (!measured.held) {
    record.notes["hold"] =
        "the kernel waits on the host, or queues more than the device takes at once: launch time "
        "is in the times";
  }
  record.samples_ms = measured.samples_ms;
  record.stop = measured.stop == Stop::converged ? "converged" : "time_limit";
}

void forget_times(Record& record) {
  for (const char* name : {"time_ms", "tflops", "time_ci_pct", "compute_ms", "exposed_comm_ms",
                           "time_imbalance", "sm_clock_mhz", "power_w", "temperature_c"}) {
    record.metrics.erase(name);
  }
  record.samples_ms.clear();
  record.rank_times_ms.clear();
  record.stop.clear();
  record.trace.reset();
}

}  // namespace longca
