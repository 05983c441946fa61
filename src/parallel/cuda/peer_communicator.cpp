#include "parallel/cuda/peer_communicator.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/cuda/error.h"
#include "core/error.h"
#include "parallel/cuda/elementwise.h"
#include "parallel/cuda/event.h"
#include "parallel/cuda/peer_memory.h"
#include "parallel/cuda/rank_exchange.h"
#include "parallel/cuda/stream_values.h"

namespace longca {
namespace {

/// Where a message lands, as its receiver tells its sender.
struct Landing {
  PeerMemory::Place place;
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
  std::int64_t stride_bytes = 0;
};

/// A message from this rank's memory into a peer's.
struct Push {
  int peer = 0;
  ByteRows from;
  ByteRows to;
  std::int64_t bytes() const { return from.outer * from.row_bytes; }
};

struct PeerGroup {
  std::vector<Push> pushes;        ///< those to one peer in their order
  std::vector<int> received_from;  ///< a peer per message
};

ByteRows rows_of(void* data, std::int64_t rows, std::int64_t row_bytes, std::int64_t stride) {
  return {data, rows, 1, row_bytes, stride, 0};
}

bool contiguous(const ByteRows& rows) {
  return rows.outer == 1 || rows.outer_stride == rows.row_bytes;
}

/// The numbers in every rank's memory, one set per peer: what that peer writes and this rank waits
/// for. Sets are a cache line apart.
class Numbers {
 public:
  enum Kind : std::uint8_t { kArrived, kGranted, kBarrier };

  Numbers(PeerMemory& memory, const RankControl& control)
      : memory_(memory), own_rank_(control.rank()) {
    const std::int64_t bytes = control.size() * kBytesPerPeer;
    begin_ = memory.place_of(memory.allocate(bytes), bytes);
  }
  /// That of `writer` in the memory of `holder`.
  std::uint32_t* word(int holder, int writer, Kind kind) const {
    PeerMemory::Place place = begin_;
    place.offset += writer * kBytesPerPeer + kind * 4;
    return static_cast<std::uint32_t*>(memory_.address(holder, place));
  }
  StreamValue tell(int peer, Kind kind, std::uint32_t value) const {
    return {StreamValue::What::write, word(peer, own_rank_, kind), value};
  }
  StreamValue await(int peer, Kind kind, std::uint32_t value) const {
    return {StreamValue::What::wait, word(own_rank_, peer, kind), value};
  }

 private:
  static constexpr std::int64_t kBytesPerPeer = 128;
  PeerMemory& memory_;
  int own_rank_;
  PeerMemory::Place begin_;
};

class PeerCommunicator : public Communicator {
 public:
  PeerCommunicator(RankControl& control, const PeerOptions& options)
      : control_(control),
        options_(options),
        memory_(control),
        numbers_(memory_, control),
        sent_(static_cast<std::size_t>(control.size())),
        received_(static_cast<std::size_t>(control.size())),
        left_(static_cast<std::size_t>(options.streams)) {
    int lowest = 0;
    int highest = 0;
    LONGCA_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
    streams_.resize(static_cast<std::size_t>(options.streams));
    // The first is the caller's.
    for (std::size_t i = 1; i < streams_.size(); ++i) {
      LONGCA_CUDA(cudaStreamCreateWithPriority(&streams_[i], cudaStreamNonBlocking, highest));
    }
  }
  ~PeerCommunicator() override {
    cudaDeviceSynchronize();
    for (std::size_t i = 1; i < streams_.size(); ++i) cudaStreamDestroy(streams_[i]);
  }
  PeerCommunicator(const PeerCommunicator&) = delete;
  PeerCommunicator& operator=(const PeerCommunicator&) = delete;

  std::string name() const override { return "peer"; }
  int rank() const override { return control_.rank(); }
  int size() const override { return control_.size(); }
  std::string version() const override {
    int driver = 0;
    LONGCA_CUDA(cudaDriverGetVersion(&driver));
    return fmt::format("CUDA driver {}.{}", driver / 1000, driver % 1000 / 10);
  }

  void* allocate(std::int64_t bytes) override { return memory_.allocate(bytes); }

  int prepare(const TransferGroup& group) override {
    PeerGroup prepared;
    for (const Transfer& receive : group.receives) prepared.received_from.push_back(receive.peer);
    for_each_pair(control_, [&](int peer, bool first) {
      if (first) tell_landings(group, peer);
      learn_landings(group, peer, prepared);
      if (!first) tell_landings(group, peer);
    });
    // Each rank starts with the one behind it, so that not all push to the same.
    const auto distance = [&](const Push& push) { return (push.peer - rank() + size()) % size(); };
    std::ranges::stable_sort(prepared.pushes, {}, distance);
    groups_.push_back(std::move(prepared));
    return static_cast<int>(groups_.size()) - 1;
  }

  void start(int group, Stream on) override {
    const PeerGroup& prepared = groups_[static_cast<std::size_t>(group)];
    streams_.front() = static_cast<cudaStream_t>(on);
    grant(prepared);
    const std::size_t used = fork(prepared);
    for (const Push& push : prepared.pushes) {
      const cudaStream_t stream = streams_[stream_of(push.peer)];
      const std::uint32_t number = ++sent_[static_cast<std::size_t>(push.peer)];
      queue_value(numbers_.await(push.peer, Numbers::kGranted, number), stream);
      move(push, stream);
      queue_value(numbers_.tell(push.peer, Numbers::kArrived, number), stream);
      count_sent(push.bytes());
    }
    join(used);
    await_arrivals(prepared);
  }
  void finish(int /*group*/) override {}

  void barrier(Stream stream) override {
    ++barriers_;
    values_.clear();
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank()) values_.push_back(numbers_.tell(peer, Numbers::kBarrier, barriers_));
    }
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank()) values_.push_back(numbers_.await(peer, Numbers::kBarrier, barriers_));
    }
    queue_values(values_, static_cast<cudaStream_t>(stream));
  }

 private:
  void tell_landings(const TransferGroup& group, int peer) {
    for (const Transfer& receive : group.receives) {
      if (receive.peer != peer) continue;
      const std::int64_t extent = (receive.rows - 1) * receive.stride_bytes + receive.row_bytes;
      const Landing landing{memory_.place_of(receive.data, extent), receive.rows, receive.row_bytes,
                            receive.stride_bytes};
      control_.send(peer, &landing, sizeof(landing));
    }
  }

  void learn_landings(const TransferGroup& group, int peer, PeerGroup& prepared) {
    for (const Transfer& send : group.sends) {
      if (send.peer != peer) continue;
      Landing landing;
      control_.receive(peer, &landing, sizeof(landing));
      LONGCA_CHECK(landing.rows == send.rows && landing.row_bytes == send.row_bytes,
                   "rank {} sends {} rows of {} bytes, and rank {} receives {} of {}", rank(),
                   send.rows, send.row_bytes, peer, landing.rows, landing.row_bytes);
      prepared.pushes.push_back({peer,
                                 rows_of(send.data, send.rows, send.row_bytes, send.stride_bytes),
                                 rows_of(memory_.address(peer, landing.place), landing.rows,
                                         landing.row_bytes, landing.stride_bytes)});
    }
  }

  /// Lets the peers push what this group receives.
  void grant(const PeerGroup& group) {
    values_.clear();
    for (const int peer : group.received_from) {
      const std::uint32_t number = ++received_[static_cast<std::size_t>(peer)];
      values_.push_back(numbers_.tell(peer, Numbers::kGranted, number));
    }
    queue_values(values_, streams_.front());
  }

  void await_arrivals(const PeerGroup& group) {
    values_.clear();
    for (const int peer : group.received_from) {
      const std::uint32_t number = received_[static_cast<std::size_t>(peer)];
      values_.push_back(numbers_.await(peer, Numbers::kArrived, number));
    }
    queue_values(values_, streams_.front());
  }

  std::size_t stream_of(int peer) const {
    const int distance = (peer - rank() + size()) % size();
    return static_cast<std::size_t>((distance - 1) % options_.streams);
  }

  /// Makes the streams that the group uses wait for the caller's; returns one past the last.
  std::size_t fork(const PeerGroup& group) {
    std::size_t used = 1;
    for (const Push& push : group.pushes) used = std::max(used, stream_of(push.peer) + 1);
    if (used > 1) begun_.record(streams_.front());
    for (std::size_t i = 1; i < used; ++i) begun_.hold_up(streams_[i]);
    return used;
  }
  void join(std::size_t used) {
    for (std::size_t i = 1; i < used; ++i) {
      left_[i].record(streams_[i]);
      left_[i].hold_up(streams_.front());
    }
  }

  void move(const Push& push, cudaStream_t stream) const {
    const ByteRows& from = push.from;
    const ByteRows& to = push.to;
    const auto row_bytes = static_cast<std::size_t>(from.row_bytes);
    if (contiguous(from) && contiguous(to)) {
      LONGCA_CUDA(cudaMemcpyAsync(to.data, from.data, static_cast<std::size_t>(push.bytes()),
                                  cudaMemcpyDefault, stream));
    } else if (from.row_bytes >= options_.engine_row_bytes) {
      LONGCA_CUDA(cudaMemcpy2DAsync(to.data, static_cast<std::size_t>(to.outer_stride), from.data,
                                    static_cast<std::size_t>(from.outer_stride), row_bytes,
                                    static_cast<std::size_t>(from.outer), cudaMemcpyDefault,
                                    stream));
    } else {
      copy_rows(from, to, stream, options_.kernel_blocks);
    }
  }

  RankControl& control_;
  PeerOptions options_;
  PeerMemory memory_;
  Numbers numbers_;
  std::vector<PeerGroup> groups_;
  std::vector<std::uint32_t> sent_;      ///< messages so far, by peer
  std::vector<std::uint32_t> received_;  ///< likewise, granted
  std::uint32_t barriers_ = 0;
  std::vector<cudaStream_t> streams_;
  CudaEvent begun_;
  std::vector<CudaEvent> left_;  ///< by stream
  std::vector<StreamValue> values_;
};

}  // namespace

std::unique_ptr<Communicator> make_peer_communicator(RankControl& control,
                                                     const PeerOptions& options) {
  return std::make_unique<PeerCommunicator>(control, options);
}

}  // namespace longca
