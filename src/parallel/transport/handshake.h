#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace longca {

/// By what numbers ranks that write into each other's memory wait for each other, without a device:
/// what one tells another, and awaits from it. Every rank counts the exchanges in which a peer
/// writes into its memory: it grants the n-th by the number n, when its place may be overwritten,
/// and the peer says n when all has arrived. A number grants or says all that are smaller, so
/// numbers never sink. They begin at 1 and go on from pass to pass, modulo 2³².
class Handshake {
 public:
  /// An exchange as this rank sees it; peers are named once each.
  struct Group {
    std::vector<int> to;    ///< those that this rank writes to
    std::vector<int> from;  ///< those that write here
    /// TransferGroup::lands_early.
    bool lands_early = false;
  };
  struct Number {
    int peer = 0;
    std::uint32_t value = 0;
    bool operator==(const Number&) const = default;
  };
  /// In this order: grants are told, the peers' awaited; then this rank writes, and tells each peer
  /// of its arrival behind what it has written there; then it awaits the peers'. Grants and
  /// arrivals stand in the order of the group's peers.
  struct Numbers {
    std::vector<Number> grants, granted;
    std::vector<Number> arrivals, arrived;
  };

  explicit Handshake(int ranks) : pairs_(static_cast<std::size_t>(ranks)) {}

  /// What can be granted before the first of these groups starts, which follow in this order: per
  /// peer those up to the first that must not land early.
  std::vector<Number> expect(std::span<const Group* const> groups);
  /// Of the group that starts now. What was granted is not granted again.
  Numbers start(const Group& group);

 private:
  struct Pair {
    std::uint32_t sent = 0;      ///< exchanges in which this rank has written to the peer
    std::uint32_t received = 0;  ///< in which the peer has written here
    std::uint32_t granted = 0;   ///< of those, at least `received`
  };
  Pair& with(int peer) { return pairs_[static_cast<std::size_t>(peer)]; }
  void grant(int peer, std::uint32_t value, std::vector<Number>& grants);

  std::vector<Pair> pairs_;  ///< by peer
};

}  // namespace longca
