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
/// - negating V and dO negates O and dV;
/// - negating K and Q negates dQ and dK;
/// and nothing else changes. (O is an input of a backward pass, and a result of a forward pass or a
/// step.) Each product that a kernel adds up keeps its magnitude, so that a kernel with a fixed
/// order of summation gives the same bits up to these signs.
///
/// Everything is queued on the device's stream.
class SignChanges {
 public:
  /// Draws columns of the KV heads `heads_k` (not empty) from `seed`. The tensors' memory outlives
  /// this.
  SignChanges(Device& device, const PassTensors& tensors, Pass pass,
              std::vector<std::int64_t> heads_k, std::uint64_t seed);

  /// Makes new inputs, of which no result equals that of the current ones: the original inputs with
  /// one drawn column of V and one of K negated.
  void draw();
  /// Negates one more column, which touches few cache lines: of V in a forward pass, of V or K in a
  /// backward pass or a step.
  void draw_more();
  /// Restores the original inputs.
  void undo();
  /// Turns results of the current inputs into those of the original inputs.
  void follow();
  /// Reverses the last `follow`, to the bit, whatever the inputs are now.
  void follow_back() const;
  /// Turns results after `follow_back` into those of the current inputs.
  void catch_up();

 private:
  struct Column {
    std::int64_t head_k = 0;
    std::int64_t column = 0;
    auto operator<=>(const Column&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  /// The columns that are negated now.
  struct State {
    std::set<Column> values;  ///< of V
    std::set<Column> scores;  ///< of K
  };

  /// Draws a column of v or k.
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
  State followed_;  ///< the state at the last `follow`
};

}  // namespace longca
