#include "parallel/transport/peer/peer_communicator.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
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

  /// `begin`: this rank's words, bytes(size) of zeroed memory. Collective.
  Numbers(PeerMemory& memory, RankMessages& control, void* begin) : own_rank_(control.rank()) {
    const auto places = exchange_records(control, memory.place_of(begin, bytes(control.size())));
    throw_together(control, attempt([&] {
                     for (int rank = 0; rank < control.size(); ++rank) {
                       begins_.push_back(memory.address(rank, places[index(rank)]));
                     }
                   }));
  }
  static std::int64_t bytes(int ranks) { return ranks * kBytesPerPeer; }
  /// Returns the word in `holder`'s memory that `writer` writes.
  std::uint32_t* word(int holder, int writer, Kind kind) const {
    auto* begin = static_cast<std::byte*>(begins_[index(holder)]);
    return reinterpret_cast<std::uint32_t*>(begin + writer * kBytesPerPeer + kind * 4);
  }
  StreamValue signal(int peer, Kind kind, std::uint32_t value) const {
    return {StreamValue::What::write, word(peer, own_rank_, kind), value};
  }
  StreamValue await(int peer, Kind kind, std::uint32_t value) const {
    return {StreamValue::What::wait, word(own_rank_, peer, kind), value};
  }

 private:
  static constexpr std::int64_t kBytesPerPeer = 128;
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  int own_rank_;
  std::vector<void*> begins_;  ///< by rank, in this process's addresses
};

class PeerCommunicator : public Communicator {
 public:
  PeerCommunicator(RankMessages& control, std::shared_ptr<PeerMemory> memory)
      : control_(control),
        blocks_(std::move(memory)),
        numbers_(*blocks_.memory, control, allocate(Numbers::bytes(control.size()))),
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

  void* allocate(std::int64_t bytes) override {
    return blocks_.all.emplace_back(blocks_.memory->allocate(bytes));
  }

  int prepare(const TransferGroup& group) override { return prepare_all({&group, 1}).front(); }
  std::vector<int> prepare_all(std::span<const TransferGroup> groups) override {
    std::vector<int> numbers;
    std::vector<PeerGroup> prepared;
    std::vector<ToPeer> peers(static_cast<std::size_t>(size()));
    for (const TransferGroup& group : groups) {
      numbers.push_back(static_cast<int>(groups_.size() + prepared.size()));
      prepared.push_back(describe(group));
      list_messages(group, prepared.size() - 1, peers);
    }
    for_each_pair(control_, [&](int peer, bool first) {
      ToPeer& with = peers[static_cast<std::size_t>(peer)];
      const auto bytes = [](const auto& landings) {
        return static_cast<std::int64_t>(landings.size() * sizeof(Landing));
      };
      const auto send = [&] {
        if (!with.own.empty()) control_.send(peer, with.own.data(), bytes(with.own));
      };
      if (first) send();
      with.theirs.resize(with.sends.size());
      if (!with.theirs.empty()) control_.receive(peer, with.theirs.data(), bytes(with.theirs));
      if (!first) send();
    });
    throw_together(control_, attempt([&] { make_pushes(peers, prepared); }));
    std::ranges::move(prepared, std::back_inserter(groups_));
    return numbers;
  }

  void expect(std::span<const int> groups, Stream on) override {
    std::vector<const Handshake::Group*> peers;
    for (const int group : groups) peers.push_back(&groups_[static_cast<std::size_t>(group)].peers);
    queue(Numbers::kGranted, handshake_.expect(peers), {}, static_cast<cudaStream_t>(on));
  }

  void map_sends(const AddressMap& map) override {
    LONGCA_CHECK(max_pitch_ < AddressMap::kApart, "rows {} bytes apart can be one copy",
                 max_pitch_);
    map_ = &map;
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

  /// A message to a peer.
  struct Sent {
    std::size_t group;
    Transfer from;
    std::uint32_t exchange;
  };
  /// What one peer and this rank tell each other about several groups.
  struct ToPeer {
    std::vector<Sent> sends;
    std::vector<Landing> theirs;  ///< of `sends`
    std::vector<Landing> own;     ///< of what the peer sends
  };

  PeerGroup describe(const TransferGroup& group) {
    PeerGroup made;
    made.alone = group.alone;
    made.signals_each =
        group.pattern == Pattern::group_cast || group.pattern == Pattern::group_reduce;
    made.peers = {peers_of(group.sends, rank(), size()), peers_of(group.receives, rank(), size()),
                  group.lands_early};
    for (const int peer : made.peers.to) ++counts(peer).sends;
    for (const int peer : made.peers.from) ++counts(peer).receives;
    return made;
  }

  void list_messages(const TransferGroup& group, std::size_t number, std::vector<ToPeer>& peers) {
    for (const Transfer& send : group.sends) {
      peers[static_cast<std::size_t>(send.peer)].sends.push_back(
          {number, send, counts(send.peer).sends});
    }
    for (const Transfer& receive : group.receives) {
      const std::int64_t extent = (receive.rows - 1) * receive.stride_bytes + receive.row_bytes;
      peers[static_cast<std::size_t>(receive.peer)].own.push_back(
          {blocks_.memory->place_of(receive.data, extent), receive.rows, receive.row_bytes,
           receive.stride_bytes, counts(receive.peer).receives});
    }
  }

  /// Learns where this rank's messages land, and makes the pushes of each group.
  void make_pushes(const std::vector<ToPeer>& peers, std::vector<PeerGroup>& prepared) {
    for (const ToPeer& with : peers) {
      for (std::size_t i = 0; i < with.sends.size(); ++i) {
        const auto& [group, send, exchange] = with.sends[i];
        const Landing& landing = with.theirs[i];
        LONGCA_CHECK(landing.rows == send.rows && landing.row_bytes == send.row_bytes,
                     "rank {} sends {} rows of {} bytes, and rank {} receives {} of {}", rank(),
                     send.rows, send.row_bytes, send.peer, landing.rows, landing.row_bytes);
        LONGCA_CHECK(landing.exchange == exchange,
                     "exchange {} of rank {} with rank {} is that one's exchange {}", exchange,
                     rank(), send.peer, landing.exchange);
        prepared[group].pushes.push_back(
            {send,
             {send.peer, blocks_.memory->address(send.peer, landing.place), landing.rows,
              landing.row_bytes, landing.stride_bytes}});
      }
    }
    const auto order = [&](const Push& push) { return (push.to.peer - rank() + size()) % size(); };
    for (PeerGroup& group : prepared) {
      std::ranges::stable_sort(group.pushes, {}, order);
      if (!group.alone) group.pushes = join_pushes(group.pushes, max_pitch_);
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

  Transfer where_it_lies(Transfer from) const {
    if (map_ != nullptr) from.data = map_->at(from.data);
    return from;
  }

  void queue_at_once(const std::vector<Push>& pushes, cudaStream_t stream) const {
    std::vector<RowsCopy> copies;
    for (const Push& push : pushes) {
      copies.push_back({byte_rows(where_it_lies(push.from)), byte_rows(push.to)});
    }
    copy_rows_all(copies, stream);
  }

  void queue_push(const Push& push, cudaStream_t stream) const {
    const Transfer from = where_it_lies(push.from);
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

  /// What this communicator took from the memory, which outlives it.
  struct Blocks {
    std::shared_ptr<PeerMemory> memory;
    std::vector<void*> all;
    explicit Blocks(std::shared_ptr<PeerMemory> from) : memory(std::move(from)) {}
    ~Blocks() {
      for (void* block : all) memory->release(block);
    }
    Blocks(const Blocks&) = delete;
    Blocks& operator=(const Blocks&) = delete;
  };

  RankMessages& control_;
  Blocks blocks_;
  Numbers numbers_;
  std::int64_t max_pitch_;
  std::vector<PeerGroup> groups_;
  Handshake handshake_;
  std::vector<Counts> counts_;  ///< by peer
  std::uint32_t barriers_ = 0;
  const AddressMap* map_ = nullptr;
  std::vector<StreamValue> values_;  ///< reused by each call that queues some
};

class PeerConnections : public CudaConnections {
 public:
  explicit PeerConnections(RankMessages& control)
      : control_(control), memory_(std::make_shared<PeerMemory>(control)) {}
  std::unique_ptr<Communicator> make_communicator() override {
    return std::make_unique<PeerCommunicator>(control_, memory_);
  }

 private:
  RankMessages& control_;
  std::shared_ptr<PeerMemory> memory_;
};

}  // namespace

std::unique_ptr<CudaConnections> make_peer_connections(RankMessages& control) {
  return std::make_unique<PeerConnections>(control);
}

}  // namespace longca
