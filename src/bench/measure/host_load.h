#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "bench/record/record.h"

namespace longca {

/// CPU time of all cores since the machine started, from /proc/stat's first line: user, nice,
/// system, irq, softirq and steal, in clock ticks. Nothing if the text is not of that form.
std::optional<double> busy_ticks(std::string_view proc_stat);

/// How busy other processes keep the host's cores while something is timed. What a hypervisor gives
/// to other machines counts as busy.
class HostLoad {
 public:
  /// Begins. `stat` is read here and at the end.
  explicit HostLoad(std::string stat = "/proc/stat");
  /// Writes the metric host_load: busy cores on average, without what this process used. Nothing
  /// where the file says nothing, or less than a clock tick has passed.
  void finish(Record& record) const;

 private:
  struct Reading {
    std::optional<double> busy_s;  ///< of all processes
    double own_s;                  ///< of this one, all threads
    std::chrono::steady_clock::time_point at;
  };
  Reading read() const;

  std::string stat_;
  Reading begin_;
};

}  // namespace longca
