#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bench/measure/nvml.h"
#include "bench/record/record.h"

namespace longca {

/// Samples a GPU every 20 ms in a thread while something is timed.
class GpuSampler {
 public:
  /// Begins. Without NVML, or for a GPU that it does not know, nothing is sampled.
  explicit GpuSampler(const std::string& pci_bus_id);
  ~GpuSampler();
  GpuSampler(const GpuSampler&) = delete;
  GpuSampler& operator=(const GpuSampler&) = delete;

  /// Ends, and writes what was seen into the record: the metrics sm_clock_mhz (median), power_w
  /// (fresh_power), temperature_c (highest), gpu_processes, the trace, and the note "throttled" if
  /// the GPU was. Nothing where nothing was sampled.
  void finish(Record& record);

 private:
  struct Point {
    double t_ms;
    Nvml::Sample sample;
  };
  void run();
  void take();
  void end();

  Nvml::Handle gpu_ = nullptr;
  std::optional<Nvml::Sample> before_;  ///< when the sampler began
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<Point> points_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  std::thread thread_;
};

/// The mean of the readings from the first on that is another than `before`, the one from before
/// the work. Drivers renew a power reading every 100 ms or so, so that earlier ones are still those
/// of an idle GPU; nothing where none is another.
std::optional<double> fresh_power(double before, std::span<const double> power_w);

/// At most `max_points` of the points, evenly spread, the last one among them.
DeviceTrace thinned(const DeviceTrace& trace, std::size_t max_points);

}  // namespace longca
