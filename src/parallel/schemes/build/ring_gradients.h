#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "parallel/schemes/build/ring.h"

namespace longca {

/// dK and dV travel around the ring one hop behind K and V. While a step is computed, the sum of
/// the earlier ranks for its block arrives; then the step's share is added, and the sum moves on
/// while the next step is computed. Sums are float32, and no attention call waits for a hop.
///
/// A sum starts at the rank after the block's owner and ends at the owner, which adds its own
/// share: CP ranks − 1 passes, as for K and V. In a double ring, a round ends at the rank that
/// received the block from the window before (the window's "home" of the block; in the first round
/// its owner), and sums then move from home to home between windows in the same way.
class RingGradients {
 public:
  explicit RingGradients(RingContext& context) : context_(context) {}

  void begin(std::vector<KeyPair> own);
  GradientTarget& target(int step, int group);
  void before(int step);
  void after(int step);
  LateSums finish(const std::function<void()>& meanwhile);

 private:
  enum class BufferKind : std::uint8_t {
    share,   ///< this rank's part of a sum that has not arrived yet
    hop,     ///< sums that travel inside the window; two
    home,    ///< sums of a whole round; two
    arrived  ///< the sum of the home in the window before
  };
  enum class Way : std::uint8_t { inner, outer };
  struct Transfer {
    Way way;
    int step;  ///< inner: the step whose block's sum is sent; outer: the first of the round
  };

  KeyPair buffer(BufferKind kind, int which, int group, std::int64_t rows);
  KeyPair home(int round, int group, std::int64_t rows);
  /// Writes the exchange that sends a transfer's sum and receives the matching one.
  void send(const Transfer& transfer, int step);
  /// Writes the adds for the sum that a transfer's exchange brought. `last`, if given, receives the
  /// sum instead where it belongs to the own gradients.
  void land(const Transfer& transfer, int step, LateSums* last = nullptr);
  void add_all(const KeyPair& from, const KeyPair& into, int step);

  RingContext& context_;
  std::vector<KeyPair> own_;             ///< gradients of the own keys, per group
  std::vector<GradientTarget> targets_;  ///< of the step, per group
  std::vector<Transfer> ready_;          ///< sums to be sent in the next step
  std::vector<Transfer> in_flight_;      ///< sums sent in this step
  /// (dk, dv) by kind, which of two, group.
  std::map<std::tuple<BufferKind, int, int>, std::pair<int, int>> buffers_;
};

}  // namespace longca
