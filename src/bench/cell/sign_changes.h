#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "bench/cell/tensors.h"
#include "bench/suite/case.h"
#include "core/device.h"

namespace longca {

/// Changes the inputs of a pass in place, by signs that its results follow exactly. For one column
/// of one KV head and of the query heads that share it,
/// - V and dO may change their signs: those of O and dV change with them;
/// - K and Q may: those of dQ and dK change with them;
/// and nothing else changes: O is an input of a backward pass, and a result of a step. Each product
/// that a kernel adds up keeps its magnitude, so that one which adds them in a fixed order gives
/// results of the same bits.
///
/// Everything is queued on the device's stream.
class SignChanges {
 public:
  /// Draws columns of the KV heads `heads_k` (not empty) from `seed`. The tensors' memory outlives
  /// this.
  SignChanges(Device& device, const PassTensors& tensors, Pass pass,
              std::vector<std::int64_t> heads_k, std::uint64_t seed);

  /// Other inputs than before, of which no result is that of the inputs before: those of the
  /// beginning but for a new column of V and one of K.
  void draw();
  /// Changes one column more, at the cost of few cache lines: in a forward pass one of V, in a
  /// backward pass or a step also one of K.
  void draw_more();
  /// Makes the inputs those of the beginning.
  void undo();
  /// Makes results of the inputs as they are those of the inputs of the beginning.
  void follow();
  /// Takes the last `follow` back, to the bit, whatever the inputs have become since.
  void follow_back() const;
  /// Makes results after `follow_back` those of the inputs as they are.
  void catch_up();

 private:
  struct Column {
    std::int64_t head_k = 0;
    std::int64_t column = 0;
    auto operator<=>(const Column&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  /// What differs from the beginning.
  struct State {
    std::set<Column> values;  ///< of V
    std::set<Column> scores;  ///< of K
  };

  /// A column of the tensor, v or k.
  Column drawn(const TensorView& of);
  void change_to(State next);
  std::vector<HeadColumn> of_inputs(const State& columns) const;
  std::vector<HeadColumn> of_results(const State& columns) const;

  Device& device_;
  PassTensors tensors_;
  Pass pass_;
  std::vector<std::int64_t> heads_k_;
  std::mt19937_64 random_;
  State state_;
  State followed_;  ///< by the results, at the last `follow`
};

}  // namespace longca
