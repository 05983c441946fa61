#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "bench/measure/cuda/hold.h"
#include "bench/measure/device_clock.h"
#include "core/cuda/caching_memory.h"
#include "core/cuda/cuda_device.h"
#include "core/cuda/error.h"
#include "core/cuda/event.h"
#include "core/device.h"

namespace longca {
namespace {

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const noexcept { cudaGraphDestroy(graph); }
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

/// Captures the graph; `why_not` says why there is none.
Graph capture(const std::function<void()>& call, cudaStream_t stream, std::string& why_not) {
  LONGCA_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  try {
    call();
  } catch (const std::exception& error) {
    why_not = error.what();
  }
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  cudaGetLastError();  // clears the error that a refused call leaves
  if (why_not.empty() && ended != cudaSuccess) {
    why_not = fmt::format("{} ({})", cudaGetErrorString(ended), cudaGetErrorName(ended));
  }
  return Graph(graph);
}

/// What `call` queues on `stream`, captured as a CUDA graph; returns a function that replays it
/// there. Throws GraphRefused for a call that does what a capture forbids, such as waiting for the
/// device or allocating memory, or that queues nothing on this stream.
std::function<void()> capture_graph(const std::function<void()>& call, cudaStream_t stream) {
  std::string why_not;
  const Graph graph = capture(call, stream, why_not);
  if (why_not.empty()) {
    std::size_t nodes = 0;
    LONGCA_CUDA(cudaGraphGetNodes(graph.get(), nullptr, &nodes));
    if (nodes == 0) why_not = "it queues its work on a stream of its own";
  }
  if (!why_not.empty()) throw GraphRefused("cannot be captured in a CUDA graph: " + why_not);
  cudaGraphExec_t made = nullptr;
  LONGCA_CUDA(cudaGraphInstantiate(&made, graph.get(), 0));
  const std::shared_ptr<std::remove_pointer_t<cudaGraphExec_t>> replayed(
      made, [](cudaGraphExec_t exec) { cudaGraphExecDestroy(exec); });
  return [replayed, stream] { LONGCA_CUDA(cudaGraphLaunch(replayed.get(), stream)); };
}

/// Back-to-back calls behind one hold. The device's queue takes about a thousand launches; a hold
/// with more behind it would only give up.
constexpr int kCallsPerHold = 16;
constexpr std::int64_t kMinFlush = std::int64_t{256} << 20;

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
    const std::function<void()> nothing = [] {};
    if (held_) {
      const double ms = time_batch(call, nothing, 1).front();
      if (held_) return ms;
      flush_caches();
    }
    return time_batch(call, nothing, 1).front();
  }

  std::vector<double> time_back_to_back(const std::function<void()>& call,
                                        const std::function<void()>& between, int count) override {
    while (true) {
      const int calls_per_hold = calls_per_hold_;
      const bool held = held_;
      std::vector<double> samples = time_batch(call, between, count);
      if (calls_per_hold == calls_per_hold_ && held == held_) return samples;
    }
  }

  HeldCall hold_back(const std::function<void()>& call, const void* output,
                     double hold_s) override {
    device_.synchronize();
    peek(output, 0);
    while (events_.size() < 2) events_.emplace_back();
    {
      const Releaser releaser{hold_};
      hold_.begin();
      events_[0].record(stream_);
      call();
      events_[1].record(stream_);
      std::this_thread::sleep_for(std::chrono::duration<double>(hold_s));
      peek(output, kPeeked);
    }
    device_.synchronize();
    if (hold_.take_gave_up()) return {};
    return {std::equal(peeked_.data(), peeked_.data() + kPeeked, peeked_.data() + kPeeked),
            events_[1].ms_since(events_[0])};
  }

  bool changed_since() override {
    if (watched().empty()) return false;
    hash_watched(1);
    device_.synchronize();
    std::vector<unsigned long long> found(2 * watched().size());
    device_.copy(found.data(), hashes_.data(),
                 static_cast<std::int64_t>(found.size() * sizeof(unsigned long long)));
    const auto middle = found.begin() + std::ssize(watched());
    return !std::equal(found.begin(), middle, middle);
  }

  std::function<void()> as_graph(const std::function<void()>& call) override {
    return capture_graph(call, stream_);
  }

 private:
  static constexpr std::size_t kPeeked{kPeekedBytes};

  void run(const std::function<void()>& call) override {
    call();
    device_.synchronize();
  }

  /// Reads the first bytes of device memory on another stream.
  void peek(const void* memory, std::size_t to) {
    if (beside_ == nullptr) {
      LONGCA_CUDA(cudaStreamCreateWithFlags(&beside_, cudaStreamNonBlocking));
    }
    LONGCA_CUDA(cudaMemcpyAsync(&peeked_[to], memory, kPeeked, cudaMemcpyDeviceToHost, beside_));
    LONGCA_CUDA(cudaStreamSynchronize(beside_));
  }

  /// Queues the hashes of what is watched: as number 0 right behind the last timed call, while the
  /// stream is still held, so that no work that comes later can slip in between; as number 1 later.
  void hash_watched(int number) {
    const auto count = std::ssize(watched());
    const std::int64_t bytes = 2 * count * static_cast<std::int64_t>(sizeof(unsigned long long));
    if (hashes_.bytes() < bytes) hashes_ = Buffer(memory_, bytes);
    auto* to = hashes_.as<unsigned long long>() + number * count;
    device_.fill(to, 0, bytes / 2);
    for (const auto& bytes_of : watched()) {
      cuda_hash_later(0, bytes_of.data(), std::ssize(bytes_of), to++, device_.stream());
    }
  }

  /// Releases the stream whatever a call throws.
  struct Releaser {
    StreamHold& hold;
    ~Releaser() { hold.release(); }
  };

  /// Times of `count` calls. If a hold gave up they mean nothing, and the next batch has one call
  /// behind a hold, or no hold at all.
  std::vector<double> time_batch(const std::function<void()>& call,
                                 const std::function<void()>& between, int count) {
    const int calls_per_hold = held_ ? std::min(calls_per_hold_, count) : count;
    while (events_.size() < static_cast<std::size_t>(2 * count)) events_.emplace_back();
    bool gave_up = false;
    for (int queued = 0; queued < count && !gave_up; queued += calls_per_hold) {
      queue(call, between, queued, std::min(queued + calls_per_hold, count), count);
      gave_up = any(hold_.take_gave_up());
    }
    device_.synchronize();
    std::vector<double> samples(static_cast<std::size_t>(count));
    if (any(hold_.take_gave_up()) || gave_up) {
      held_ = calls_per_hold > 1;
      calls_per_hold_ = 1;
      return samples;
    }
    for (std::size_t i = 0; i < samples.size(); ++i) {
      samples[i] = events_[2 * i + 1].ms_since(events_[2 * i]);
    }
    return samples;
  }

  /// Queues calls [first, end) of a batch, each between events of its own, behind one hold; a team
  /// lines up behind it, too. `between` runs before every call of the batch but the first.
  void queue(const std::function<void()>& call, const std::function<void()>& between, int first,
             int end, int count) {
    const Releaser releaser{hold_};
    if (held_) hold_.begin();
    for (int i = first; i < end; ++i) {
      if (i > 0) between();
      if (i == first) line_up();
      const auto event = static_cast<std::size_t>(2 * i);
      events_[event].record(stream_);
      call();
      events_[event + 1].record(stream_);
    }
    if (end == count) hash_watched(0);
  }

  Device& device_;
  cudaStream_t stream_;
  CachingCudaMemory memory_;  ///< not the device's: the buffer must not count as the case's
  Buffer flushed_;
  Buffer hashes_;  ///< of what is watched: number 0 of each, then number 1
  StreamHold hold_;
  cudaStream_t beside_ = nullptr;  ///< for `peek`; not destroyed, as the device's own is not
  PinnedArray<unsigned char> peeked_{2 * kPeeked};
  std::vector<TimedCudaEvent> events_;
  bool held_ = true;
  int calls_per_hold_ = kCallsPerHold;
};

}  // namespace

std::unique_ptr<DeviceClock> make_cuda_clock() {
  return std::make_unique<CudaClock>();
}

}  // namespace longca
