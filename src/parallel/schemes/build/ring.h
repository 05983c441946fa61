#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "parallel/schemes/build/context_exchange.h"
#include "parallel/schemes/build/grid.h"
#include "parallel/schemes/build/head_exchange.h"

namespace longca {

/// Coordinates of a CP rank in a double ring of `windows` windows of `size` CP ranks each:
/// CP rank = window · size + index. One window is a plain ring.
struct RingCoordinates {
  int windows = 1;
  int size = 1;
  int window = 0;
  int index = 0;

  /// Requires that `window_size` divides `cp_ranks`.
  static RingCoordinates of(int cp_rank, int cp_ranks, int window_size);
  int steps() const { return windows * size; }
  /// A round is the `size` consecutive steps inside a window.
  int round(int step) const { return step / size; }
  int step_of_round(int step) const { return step % size; }
  /// The CP rank that is offset by these windows and places (back if negative), cyclically; at
  /// most one turn back.
  int neighbour(int windows_on, int places_on) const;
  /// The owner of the keys that this CP rank holds in a step.
  int cp_rank_of(int step) const { return neighbour(-round(step), -step_of_round(step)); }
};

/// State shared by Ring and RingGradients.
class RingContext {
 public:
  RingContext(const Grid& the_grid, int the_rank, int window_size, const HeadLayout& layout,
              HeadExchange& the_heads, PlanWriter& the_writer);

  /// Tokens, and rows with padding, of the keys that this rank holds in a step.
  std::int64_t tokens(int step) { return counts_of(place.cp_rank_of(step)).tokens; }
  std::int64_t rows(int step) { return counts_of(place.cp_rank_of(step)).rows; }
  std::int64_t max_rows();
  std::vector<Range> ranges(int step);
  /// The rank of the same heads at another CP rank.
  int peer(int windows_on, int places_on) const {
    return grid.rank(place.neighbour(windows_on, places_on), grid.member(rank));
  }

  const Grid& grid;
  const int rank;
  const int groups;  ///< KV groups of HeadLayout
  const RingCoordinates place;
  HeadExchange& heads;
  PlanWriter& writer;

 private:
  struct Counts {
    std::int64_t tokens = 0;
    std::int64_t rows = -1;  ///< −1: not computed yet
  };
  const Counts& counts_of(int cp_rank);

  /// Per CP rank. Ranges are not cached: those of a thousand CP ranks may be millions.
  std::vector<Counts> counts_;
};

class RingGradients;

/// K and V pass around a ring of CP ranks (H. Liu et al., "Ring Attention with Blockwise
/// Transformers", 2023): within a window in every step, and between windows once per round, hidden
/// by the whole round (D. Gu et al., "LoongTrain", 2024: DoubleRing). Double-buffered: the next
/// block arrives while one is computed. Each rank makes CP ranks − 1 passes.
class Ring final : public ContextExchange {
 public:
  Ring(const Grid& grid, int rank, int window_size, const HeadLayout& layout, HeadExchange& heads,
       PlanWriter& writer);
  ~Ring() override;

  int steps() const override { return context_.place.steps(); }
  int blocks(int) const override { return 1; }
  std::vector<Range> ranges(int step, int block) override;
  KeyPair keys(int step, int block, int group) override;
  void fetch(int step) override;
  void begin_gradients(std::vector<KeyPair> own) override;
  GradientTarget& target(int step, int block, int group) override;
  void before_gradients(int step) override;
  void after_gradients(int step) override;
  LateSums finish_gradients(const std::function<void()>& meanwhile) override;
  /// The sum of the own block comes home at the end; that of the first of several rounds earlier.
  bool adds_to_own_keys() const override { return context_.place.windows > 1; }

 private:
  /// The first `rows` rows of the buffer that holds a step's keys.
  KeyPair rows(int step, int group, std::int64_t rows);
  /// Writes the exchange that sends the keys of `from_step` to rank `to` and receives those of
  /// `to_step` from rank `from`.
  void pass(int from_step, int to_step, int to, int from);

  RingContext context_;
  /// Buffers by k or v, outer or inner pass, which of two, group.
  std::map<std::tuple<TensorRole, bool, int, int>, int> buffers_;
  std::unique_ptr<RingGradients> gradients_;
};

}  // namespace longca
