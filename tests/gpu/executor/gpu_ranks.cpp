#include "gpu/executor/gpu_ranks.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "core/cuda/error.h"
#include "core/cuda/event.h"
#include "core/error.h"

namespace longca::testing {
namespace {

/// One end of a message.
struct Posted {
  Transfer transfer;
  cudaStream_t stream;
  CudaEvent ready;                  ///< what the end had queued before
  std::shared_ptr<CudaEvent> done;  ///< the copy; null until it is queued
};

struct Channel {
  std::deque<std::shared_ptr<Posted>> sends, receives;
};

struct World {
  int ranks;
  std::mutex mutex;
  std::condition_variable changed;
  bool broken = false;                              ///< a rank has thrown: nobody waits any more
  std::map<std::pair<int, int>, Channel> channels;  ///< by sender and receiver
  std::vector<Buffer> memory;
  int waiting = 0;
  int barriers = 0;

  template <typename Done>
  void wait(std::unique_lock<std::mutex>& lock, Done&& done) {
    changed.wait(lock, [&] { return broken || done(); });
    if (broken) throw std::runtime_error("another rank has failed");
  }

  /// Queues the copies of messages whose two ends are there.
  void move(Channel& channel) {
    while (!channel.sends.empty() && !channel.receives.empty()) {
      Posted& from = *channel.sends.front();
      Posted& to = *channel.receives.front();
      const Transfer& s = from.transfer;
      const Transfer& r = to.transfer;
      LONGCA_CHECK(s.rows == r.rows && s.row_bytes == r.row_bytes,
                   "{} rows of {} bytes meet {} of {}", s.rows, s.row_bytes, r.rows, r.row_bytes);
      from.ready.hold_up(to.stream);
      LONGCA_CUDA(cudaMemcpy2DAsync(
          r.data, static_cast<std::size_t>(r.stride_bytes), s.data,
          static_cast<std::size_t>(s.stride_bytes), static_cast<std::size_t>(s.row_bytes),
          static_cast<std::size_t>(s.rows), cudaMemcpyDeviceToDevice, to.stream));
      to.done = from.done = std::make_shared<CudaEvent>();
      to.done->record(to.stream);
      channel.sends.pop_front();
      channel.receives.pop_front();
      changed.notify_all();
    }
  }
};

class GpuRank final : public Communicator {
 public:
  GpuRank(World& world, int rank) : world_(world), rank_(rank) {}

  std::string name() const override { return "one GPU"; }
  int rank() const override { return rank_; }
  int size() const override { return world_.ranks; }
  std::string version() const override { return {}; }

  void* allocate(std::int64_t bytes) override {
    const std::scoped_lock lock(world_.mutex);
    Device& gpu = Device::get(DeviceKind::cuda);
    const Buffer& buffer = world_.memory.emplace_back(gpu.memory(), bytes);
    gpu.fill(buffer.data(), kPoison, bytes);
    return buffer.data();
  }

  int prepare(const TransferGroup& group) override {
    groups_.push_back(group);
    return static_cast<int>(groups_.size()) - 1;
  }

  void start(int number, Stream on) override {
    const TransferGroup& group = groups_.at(static_cast<std::size_t>(number));
    auto* const stream = static_cast<cudaStream_t>(on);
    std::vector<std::shared_ptr<Posted>> posted;
    std::unique_lock lock(world_.mutex);
    const auto post = [&](const Transfer& t, Channel& channel, auto& queue) {
      posted.push_back(std::make_shared<Posted>(t, stream));
      posted.back()->ready.record(stream);
      queue.push_back(posted.back());
      world_.move(channel);
    };
    for (const Transfer& t : group.receives) {
      LONGCA_CUDA(cudaMemset2DAsync(t.data, static_cast<std::size_t>(t.stride_bytes), kPoison,
                                    static_cast<std::size_t>(t.row_bytes),
                                    static_cast<std::size_t>(t.rows), stream));
    }
    for (const Transfer& t : group.receives) {
      Channel& channel = world_.channels[{t.peer, rank_}];
      post(t, channel, channel.receives);
    }
    for (const Transfer& t : group.sends) {
      Channel& channel = world_.channels[{rank_, t.peer}];
      post(t, channel, channel.sends);
      count_sent(t.bytes());
    }
    world_.wait(lock, [&] {
      return std::ranges::all_of(posted, [](const auto& p) { return p->done != nullptr; });
    });
    for (const auto& p : posted) p->done->hold_up(stream);
  }

  void finish(int /*group*/) override {}

  void barrier(Stream /*stream*/) override {
    std::unique_lock lock(world_.mutex);
    const int now = world_.barriers;
    if (++world_.waiting == world_.ranks) {
      world_.waiting = 0;
      ++world_.barriers;
      world_.changed.notify_all();
    }
    world_.wait(lock, [&] { return world_.barriers != now; });
  }

 private:
  static constexpr unsigned char kPoison = 0xff;  ///< all bits set are a NaN of every dtype
  World& world_;
  int rank_;
  std::vector<TransferGroup> groups_;
};

}  // namespace

void run_gpu_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  World world;
  world.ranks = ranks;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        GpuRank communicator(world, rank);
        body(communicator);
      } catch (...) {
        const std::scoped_lock lock(world.mutex);
        if (!world.broken) failure = std::current_exception();
        world.broken = true;
        world.changed.notify_all();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Device::get(DeviceKind::cuda).synchronize();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace longca::testing
