#include "bench/measure/gpu_sampler.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "bench/measure/statistics.h"

namespace longca {
namespace {

using namespace std::chrono_literals;

constexpr auto kInterval = 20ms;
constexpr std::size_t kMaxPoints = 100;  // of a record's trace

}  // namespace

GpuSampler::GpuSampler(const std::string& pci_bus_id) {
  if (Nvml::get() == nullptr) return;
  gpu_ = Nvml::get()->find(pci_bus_id);
  if (gpu_ != nullptr) thread_ = std::thread([this] { run(); });
}

GpuSampler::~GpuSampler() {
  end();
}

void GpuSampler::end() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void GpuSampler::run() {
  std::unique_lock lock(mutex_);
  before_ = Nvml::get()->sample(gpu_);
  // The first sample is taken after an interval: at the beginning the GPU is still idle.
  while (!ended_.wait_for(lock, kInterval, [&] { return ending_; })) take();
  take();
}

void GpuSampler::take() {
  if (const auto sample = Nvml::get()->sample(gpu_)) {
    const std::chrono::duration<double, std::milli> passed =
        std::chrono::steady_clock::now() - begin_;
    points_.push_back({passed.count(), *sample});
  }
}

void GpuSampler::finish(Record& record) {
  end();
  if (points_.empty()) return;
  DeviceTrace trace;
  double hottest = 0;
  std::uint64_t reasons = 0;
  for (const auto& [t_ms, sample] : points_) {
    trace.t_ms.push_back(t_ms);
    trace.sm_clock_mhz.push_back(sample.sm_clock_mhz);
    trace.power_w.push_back(sample.power_w);
    hottest = std::max(hottest, sample.temperature_c);
    reasons |= sample.throttle_reasons;
  }
  record.metrics["sm_clock_mhz"] = median(trace.sm_clock_mhz);
  const auto power = before_ ? fresh_power(before_->power_w, trace.power_w) : std::nullopt;
  if (power) record.metrics["power_w"] = *power;
  record.metrics["temperature_c"] = hottest;
  if (const auto count = Nvml::get()->processes(gpu_)) record.metrics["gpu_processes"] = *count;
  const std::string throttled = throttle_names(reasons);
  if (!throttled.empty()) record.notes["throttled"] = throttled;
  record.trace = thinned(trace, kMaxPoints);
}

std::optional<double> fresh_power(double before, std::span<const double> power_w) {
  const auto first = std::ranges::find_if(power_w, [&](double w) { return w != before; });
  if (first == power_w.end()) return std::nullopt;
  return std::accumulate(first, power_w.end(), 0.0) /
         static_cast<double>(std::distance(first, power_w.end()));
}

DeviceTrace thinned(const DeviceTrace& trace, std::size_t max_points) {
  const std::size_t count = trace.t_ms.size();
  const std::size_t kept = std::min(count, max_points);
  DeviceTrace thin;
  for (std::size_t i = 0; i < kept; ++i) {
    const std::size_t from = (i + 1) * count / kept - 1;
    thin.t_ms.push_back(trace.t_ms[from]);
    thin.sm_clock_mhz.push_back(trace.sm_clock_mhz[from]);
    thin.power_w.push_back(trace.power_w[from]);
  }
  return thin;
}

}  // namespace longca
