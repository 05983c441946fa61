#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace longca {

/// Sequence numbers by which ranks that write into each other's memory synchronise (a credit
/// protocol; pure bookkeeping, no device). Each ordered pair of ranks counts its exchanges 1, 2, …,
/// modulo 2³², and never restarts. The receiver grants exchange n once its buffers may be
/// overwritten; the sender signals n once all of its data has been written. A number implies all
/// smaller ones, so the words in memory only grow.
class Handshake {
 public:
  /// One exchange of this rank; each peer is listed once.
  struct Group {
    std::vector<int> to;    ///< ranks that this rank writes to
    std::vector<int> from;  ///< ranks that write to this rank
    /// TransferGroup::lands_early.
    bool lands_early = false;
  };
  struct Number {
    int peer = 0;
    std::uint32_t value = 0;
    bool operator==(const Number&) const = default;
  };
  /// What a rank does in an exchange, in this order; entries follow the order of the group's peers.
  struct Numbers {
    std::vector<Number> grants;    ///< signalled to the peers that write here
    std::vector<Number> granted;   ///< awaited from the peers written to, before the first write
    std::vector<Number> arrivals;  ///< signalled to each peer behind the data written to it
    std::vector<Number> arrived;   ///< awaited from the peers that write here
  };

  explicit Handshake(int ranks) : pairs_(static_cast<std::size_t>(ranks)) {}

  /// Returns what may be granted before the first of `groups`, which start in this order: to each
  /// peer, all of its groups before the first that must not land early.
  std::vector<Number> expect(std::span<const Group* const> groups);
  /// Returns the numbers of the group that starts now, without grants that were given before.
  Numbers start(const Group& group);

 private:
  struct Pair {
    std::uint32_t sent = 0;      ///< exchanges in which this rank has written to the peer
    std::uint32_t received = 0;  ///< in which the peer has written here
    std::uint32_t granted = 0;   ///< exchanges granted to the peer; at least `received`
  };
  Pair& pair(int peer) { return pairs_[static_cast<std::size_t>(peer)]; }
  /// Appends the grant unless it, or a later one, was given before.
  void grant(int peer, std::uint32_t value, std::vector<Number>& grants);

  std::vector<Pair> pairs_;  ///< by peer
};

}  // namespace longca
