#include "bench/cuda/cuda_clock.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>

#include "bench/cuda/graph.h"
#include "bench/cuda/hold.h"
#include "core/cuda/caching_memory.h"
#include "core/cuda/error.h"
#include "core/device.h"

namespace longca {
namespace {

/// Calls behind one hold when many run back to back. The device's queue takes about a thousand
/// launches, and a hold that it cannot queue everything behind would only give up.
constexpr int kCallsPerHold = 16;
constexpr std::int64_t kMinFlush = std::int64_t{256} << 20;

class Event {
 public:
  Event() { LONGCA_CUDA(cudaEventCreate(&event_)); }
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) const { LONGCA_CUDA(cudaEventRecord(event_, stream)); }
  /// ms from `begin` to this one; both are over.
  double since(const Event& begin) const {
    float ms = 0;
    LONGCA_CUDA(cudaEventElapsedTime(&ms, begin.event_, event_));
    return static_cast<double>(ms);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaClock : public DeviceClock {
 public:
  CudaClock()
      : device_(Device::get(DeviceKind::cuda)),
        stream_(static_cast<cudaStream_t>(device_.stream())),
        flushed_(memory_, std::max(4 * device_.properties().cache_bytes, kMinFlush)),
        hold_(stream_) {}

  void begin() override {
    held_ = true;
    calls_per_hold_ = kCallsPerHold;
  }
  bool held() const override { return held_; }

  void flush_caches() override { device_.fill(flushed_.data(), 0, flushed_.bytes()); }

  double time_once(const std::function<void()>& call) override {
    if (held_) {
      const double ms = time_batch(call, 1).front();
      if (held_) return ms;
      flush_caches();
    }
    return time_batch(call, 1).front();
  }

  std::vector<double> time_back_to_back(const std::function<void()>& call, int count) override {
    while (true) {
      const int calls_per_hold = calls_per_hold_;
      const bool held = held_;
      std::vector<double> samples = time_batch(call, count);
      if (calls_per_hold == calls_per_hold_ && held == held_) return samples;
    }
  }

  HeldCall hold_back(const std::function<void()>& call, const void* output,
                     double patience_s) override {
    device_.synchronize();
    peek(output, 0);
    while (events_.size() < 2) events_.emplace_back();
    {
      const Releaser releaser{hold_};
      hold_.begin();
      events_[0].record(stream_);
      call();
      events_[1].record(stream_);
      std::this_thread::sleep_for(std::chrono::duration<double>(patience_s));
      peek(output, kPeeked);
    }
    device_.synchronize();
    if (hold_.take_gave_up()) return {};
    return {std::equal(peeked_.data(), peeked_.data() + kPeeked, peeked_.data() + kPeeked),
            events_[1].since(events_[0])};
  }

  std::function<void()> as_graph(const std::function<void()>& call) override {
    return capture_graph(call, stream_);
  }

 private:
  static constexpr std::size_t kPeeked{kPeekedBytes};

  /// Reads the first bytes of device memory beside the stream.
  void peek(const void* memory, std::size_t to) {
    if (beside_ == nullptr) {
      LONGCA_CUDA(cudaStreamCreateWithFlags(&beside_, cudaStreamNonBlocking));
    }
    LONGCA_CUDA(cudaMemcpyAsync(&peeked_[to], memory, kPeeked, cudaMemcpyDeviceToHost, beside_));
    LONGCA_CUDA(cudaStreamSynchronize(beside_));
  }

  /// Lets the stream go whatever a call throws.
  struct Releaser {
    StreamHold& hold;
    ~Releaser() { hold.release(); }
  };

  /// Times of `count` calls. If a hold gave up the times count for nothing, and the next batch has
  /// fewer calls behind a hold, or none is held.
  std::vector<double> time_batch(const std::function<void()>& call, int count) {
    std::vector<double> samples;
    const int calls_per_hold = held_ ? std::min(calls_per_hold_, count) : count;
    const int holds = (count + calls_per_hold - 1) / calls_per_hold;
    while (events_.size() < static_cast<std::size_t>(count + holds)) events_.emplace_back();
    bool gave_up = false;
    for (int queued = 0; queued < count && !gave_up; queued += calls_per_hold) {
      queue(call, queued + queued / calls_per_hold, std::min(calls_per_hold, count - queued));
      gave_up = any(hold_.take_gave_up());
    }
    device_.synchronize();
    if (any(hold_.take_gave_up()) || gave_up) {
      held_ = calls_per_hold > 1;
      calls_per_hold_ = 1;
      return std::vector<double>(static_cast<std::size_t>(count));
    }
    for (int i = 0; i < count; ++i) {
      const auto end = static_cast<std::size_t>(i + i / calls_per_hold + 1);
      samples.push_back(events_[end].since(events_[end - 1]));
    }
    return samples;
  }

  /// An event, then `count` calls with an event after each, behind one hold; a team waits for each
  /// other behind it, too.
  void queue(const std::function<void()>& call, int first_event, int count) {
    const Releaser releaser{hold_};
    if (held_) hold_.begin();
    line_up();
    auto event = events_.begin() + first_event;
    event->record(stream_);
    for (int i = 0; i < count; ++i) {
      call();
      (++event)->record(stream_);
    }
  }

  Device& device_;
  cudaStream_t stream_;
  CachingCudaMemory
      memory_;  ///< apart from the device's: the buffer is the runner's, not the case's
  Buffer flushed_;
  StreamHold hold_;
  cudaStream_t beside_ = nullptr;  ///< not destroyed, as the device's own
  PinnedArray<unsigned char> peeked_{2 * kPeeked};
  std::vector<Event> events_;
  bool held_ = true;
  int calls_per_hold_ = kCallsPerHold;
};

}  // namespace

std::unique_ptr<DeviceClock> make_cuda_clock() {
  return std::make_unique<CudaClock>();
}

}  // namespace longca
