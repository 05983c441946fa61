#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "parallel/schemes/build/ring.h"

namespace longca {

/// dK and dV of a ring, one hop behind K and V: while a turn is computed, what the earlier ranks
/// have summed of its block arrives; then the turn's own share is added, and the sum moves on while
/// the next turn is computed. Sums are float32 and are added up after the turn, so that no
/// computing waits for a hop.
///
/// The owner's own share never travels: a sum starts at the first rank after the block's owner and
/// ends at the owner, which adds it. So there are CP ranks − 1 passes, as of K and V. In a double
/// ring each round inside a window ends at the rank that got the block from the window before (its
/// home there, for the first round its owner), and the homes' sums move from window to window in
/// the same way.
class RingGradients {
 public:
  explicit RingGradients(RingContext& context) : context_(context) {}

  void begin(std::vector<KeyPair> own);
  GradientTarget& target(int turn, int group);
  void before(int turn);
  void after(int turn);
  LateSums finish(const std::function<void()>& meanwhile);

 private:
  enum class Slot : std::uint8_t {
    share,   ///< what this rank adds to a sum that has not arrived yet
    hop,     ///< sums on their way inside the window, two of them
    home,    ///< sums of a whole round, two of them
    arrived  ///< a home's sum from the window before
  };
  enum class Way : std::uint8_t { inner, outer };
  struct Transfer {
    Way way;
    int turn;  ///< inner: the turn whose block's sum is sent; outer: the first of the round
  };

  KeyPair buffer(Slot slot, int which, int group, std::int64_t rows);
  KeyPair home(int round, int group, std::int64_t rows);
  void send(const Transfer& transfer, int step);
  /// `last`: takes what would be added to the own gradients, if given.
  void land(const Transfer& transfer, int step, LateSums* last = nullptr);
  void add_all(const KeyPair& from, const KeyPair& into, int step);

  RingContext& context_;
  std::vector<KeyPair> own_;
  std::vector<GradientTarget> targets_;  ///< of the turn, per group
  std::vector<Transfer> ready_;
  std::vector<Transfer> on_the_way_;
  std::map<std::tuple<Slot, int, int>, std::pair<int, int>> buffers_;
};

}  // namespace longca
