#include "parallel/transport/peer/peer_communicator.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "core/cuda/error.h"
#include "core/cuda/rows.h"
#include "core/error.h"
#include "parallel/transport/handshake.h"
#include "parallel/transport/peer/peer_memory.h"
#include "parallel/transport/peer/stream_values.h"
#include "parallel/transport/pushes.h"
#include "parallel/transport/rank_exchange.h"
#include "parallel/transport/transfer_rows.h"

namespace longca {
namespace {

/// The receive buffer of a message, as its receiver describes it to the sender.
struct Landing {
  PeerMemory::Place place;
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
  std::int64_t stride_bytes = 0;
  std::uint32_t exchange = 0;  ///< number of the exchange between these two ranks, from 1
};

struct PeerGroup {
  bool alone = false;  ///< TransferGroup::alone
  /// Signals each peer as soon as its own messages have arrived: for a group cast or reduce, where
  /// peers get different amounts. In an all-to-all every peer waits for the last message anyway.
  bool signals_each = false;
  std::vector<Push> pushes;  ///< in the order of peers.to
  Handshake::Group peers;
};

/// The peers of the transfers, each once, starting with the next rank, so that the ranks do not all
/// push to the same peer at once.
std::vector<int> peers_of(const std::vector<Transfer>& transfers, int rank, int size) {
  std::vector<int> peers;
  for (int distance = 1; distance < size; ++distance) {
    const int peer = (rank + distance) % size;
    if (std::ranges::any_of(transfers, [&](const Transfer& t) { return t.peer == peer; })) {
      peers.push_back(peer);
    }
  }
  return peers;
}

/// The largest row pitch of a 2D copy, in bytes.
std::int64_t max_pitch() {
  int device = 0;
  int pitch = 0;
  LONGCA_CUDA(cudaGetDevice(&device));
  LONGCA_CUDA(cudaDeviceGetAttribute(&pitch, cudaDevAttrMaxPitch, device));
  return pitch;
}

/// Addresses of the sequence numbers in every rank's memory: one cache line per peer, written by
/// that peer and awaited by the owner.
class Numbers {
 public:
  enum Kind : std::uint8_t { kArrived, kGranted, kBarrier };

  Numbers(PeerMemory& memory, const RankControl& control)
      : memory_(memory), own_rank_(control.rank()) {
    const std::int64_t bytes = control.size() * kBytesPerPeer;
    begin_ = memory.place_of(memory.allocate(bytes), bytes);
  }
  /// Returns the word in `holder`'s memory that `writer` writes.
  std::uint32_t* word(int holder, int writer, Kind kind) const {
    PeerMemory::Place place = begin_;
    place.offset += writer * kBytesPerPeer + kind * 4;
    return static_cast<std::uint32_t*>(memory_.address(holder, place));
  }
  StreamValue signal(int peer, Kind kind, std::uint32_t value) const {
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
  explicit PeerCommunicator(RankControl& control)
      : control_(control),
        memory_(control),
        numbers_(memory_, control),
        max_pitch_(max_pitch()),
        handshake_(control.size()),
        counts_(static_cast<std::size_t>(control.size())) {}

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
    prepared.alone = group.alone;
    prepared.signals_each =
        group.pattern == Pattern::group_cast || group.pattern == Pattern::group_reduce;
    prepared.peers = {peers_of(group.sends, rank(), size()),
                      peers_of(group.receives, rank(), size()), group.lands_early};
    for (const int peer : prepared.peers.to) ++counts(peer).sends;
    for (const int peer : prepared.peers.from) ++counts(peer).receives;
    for_each_pair(control_, [&](int peer, bool first) {
      if (first) send_landings(group, peer);
      receive_landings(group, peer, prepared);
      if (!first) send_landings(group, peer);
    });
    const auto order = [&](const Push& push) { return (push.to.peer - rank() + size()) % size(); };
    std::ranges::stable_sort(prepared.pushes, {}, order);
    if (!prepared.alone) prepared.pushes = join_pushes(prepared.pushes, max_pitch_);
    groups_.push_back(std::move(prepared));
    return static_cast<int>(groups_.size()) - 1;
  }

  void expect(std::span<const int> groups, Stream on) override {
    std::vector<const Handshake::Group*> peers;
    for (const int group : groups) peers.push_back(&groups_[static_cast<std::size_t>(group)].peers);
    queue(Numbers::kGranted, handshake_.expect(peers), {}, static_cast<cudaStream_t>(on));
  }

  void start(int group, Stream on) override {
    const auto stream = static_cast<cudaStream_t>(on);
    const PeerGroup& prepared = groups_[static_cast<std::size_t>(group)];
    const Handshake::Numbers numbers = handshake_.start(prepared.peers);
    queue(Numbers::kGranted, numbers.grants, numbers.granted, stream);
    const auto unsignalled = queue_pushes(prepared, numbers.arrivals, stream);
    for (const Push& push : prepared.pushes) count_sent(push.from.bytes());
    queue(Numbers::kArrived, unsignalled, numbers.arrived, stream);
  }
  void finish(int /*group*/) override {}

  void barrier(Stream stream) override {
    ++barriers_;
    values_.clear();
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank()) values_.push_back(numbers_.signal(peer, Numbers::kBarrier, barriers_));
    }
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank()) values_.push_back(numbers_.await(peer, Numbers::kBarrier, barriers_));
    }
    queue_values(values_, static_cast<cudaStream_t>(stream));
  }

 private:
  /// The number of prepared exchanges with one peer.
  struct Counts {
    std::uint32_t sends = 0;
    std::uint32_t receives = 0;
  };
  Counts& counts(int peer) { return counts_[static_cast<std::size_t>(peer)]; }

  void queue(Numbers::Kind kind, const std::vector<Handshake::Number>& signalled,
             const std::vector<Handshake::Number>& awaited, cudaStream_t stream) {
    values_.clear();
    for (const auto& [peer, value] : signalled)
      values_.push_back(numbers_.signal(peer, kind, value));
    for (const auto& [peer, value] : awaited) values_.push_back(numbers_.await(peer, kind, value));
    queue_values(values_, stream);
  }

  /// Tells `peer` where its messages of this group land.
  void send_landings(const TransferGroup& group, int peer) {
    for (const Transfer& receive : group.receives) {
      if (receive.peer != peer) continue;
      const std::int64_t extent = (receive.rows - 1) * receive.stride_bytes + receive.row_bytes;
      const Landing landing{memory_.place_of(receive.data, extent), receive.rows, receive.row_bytes,
                            receive.stride_bytes, counts(peer).receives};
      control_.send(peer, &landing, sizeof(landing));
    }
  }

  /// Learns where this rank's messages land at `peer`, and makes the pushes.
  void receive_landings(const TransferGroup& group, int peer, PeerGroup& prepared) {
    for (const Transfer& send : group.sends) {
      if (send.peer != peer) continue;
      Landing landing;
      control_.receive(peer, &landing, sizeof(landing));
      LONGCA_CHECK(landing.rows == send.rows && landing.row_bytes == send.row_bytes,
                   "rank {} sends {} rows of {} bytes, and rank {} receives {} of {}", rank(),
                   send.rows, send.row_bytes, peer, landing.rows, landing.row_bytes);
      LONGCA_CHECK(landing.exchange == counts(peer).sends,
                   "exchange {} of rank {} with rank {} is that one's exchange {}",
                   counts(peer).sends, rank(), peer, landing.exchange);
      prepared.pushes.push_back({send,
                                 {peer, memory_.address(peer, landing.place), landing.rows,
                                  landing.row_bytes, landing.stride_bytes}});
    }
  }

  /// Queues the pushes and returns the arrivals that are yet to be signalled. A copy engine needs
  /// about 5 µs between two pushes: computing hides that; in a group alone one kernel writes all.
  std::vector<Handshake::Number> queue_pushes(const PeerGroup& group,
                                              const std::vector<Handshake::Number>& arrivals,
                                              cudaStream_t stream) {
    if (group.alone) {
      queue_at_once(group.pushes, stream);
      return arrivals;
    }
    std::vector<Handshake::Number> unsignalled;
    auto push = group.pushes.begin();
    for (const Handshake::Number& arrival : arrivals) {
      if (group.signals_each) queue(Numbers::kArrived, std::exchange(unsignalled, {}), {}, stream);
      for (; push != group.pushes.end() && push->to.peer == arrival.peer; ++push) {
        queue_push(*push, stream);
      }
      unsignalled.push_back(arrival);
    }
    LONGCA_CHECK(push == group.pushes.end(), "a push to rank {}, which has no arrival",
                 push->to.peer);
    return unsignalled;
  }

  static void queue_at_once(const std::vector<Push>& pushes, cudaStream_t stream) {
    std::vector<RowsCopy> copies;
    for (const Push& push : pushes) copies.push_back({byte_rows(push.from), byte_rows(push.to)});
    copy_rows_all(copies, stream);
  }

  static void queue_push(const Push& push, cudaStream_t stream) {
    const Transfer& from = push.from;
    const Transfer& to = push.to;
    if (is_contiguous(from) && is_contiguous(to)) {
      LONGCA_CUDA(cudaMemcpyAsync(to.data, from.data, static_cast<std::size_t>(from.bytes()),
                                  cudaMemcpyDefault, stream));
    } else {
      LONGCA_CUDA(cudaMemcpy2DAsync(
          to.data, static_cast<std::size_t>(to.stride_bytes), from.data,
          static_cast<std::size_t>(from.stride_bytes), static_cast<std::size_t>(from.row_bytes),
          static_cast<std::size_t>(from.rows), cudaMemcpyDefault, stream));
    }
  }

  RankControl& control_;
  PeerMemory memory_;
  Numbers numbers_;
  std::int64_t max_pitch_;
  std::vector<PeerGroup> groups_;
  Handshake handshake_;
  std::vector<Counts> counts_;  ///< by peer
  std::uint32_t barriers_ = 0;
  std::vector<StreamValue> values_;  ///< reused by each call that queues some
};

}  // namespace

std::unique_ptr<Communicator> make_peer_communicator(RankControl& control) {
  return std::make_unique<PeerCommunicator>(control);
}

}  // namespace longca
