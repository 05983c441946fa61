#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "parallel/schemes/build/context_exchange.h"
#include "parallel/schemes/build/grid.h"
#include "parallel/schemes/build/head_exchange.h"

namespace longca {

/// A rank's place in a double ring: `windows` rings of `size` CP ranks each, CP rank
/// window · size + index. One window: a plain ring.
struct RingCoordinates {
  int windows = 1;
  int size = 1;
  int window = 0;
  int index = 0;

  /// `window_size` divides `CP ranks`.
  static RingCoordinates of(int cp_rank, int cp_ranks, int window_size);
  int turns() const { return windows * size; }
  /// Turns in a window are consecutive.
  int round(int turn) const { return turn / size; }
  int turn_of_round(int turn) const { return turn % size; }
  /// The CP rank so many windows and places further on; negative: before this one.
  int neighbour(int windows_on, int places_on) const;
  /// Whose keys this CP rank has in a turn.
  int cp_rank_of(int turn) const { return neighbour(-round(turn), -turn_of_round(turn)); }
};

/// What a ring and its gradients share.
class RingContext {
 public:
  RingContext(const Grid& the_grid, int the_rank, int window_size, const HeadLayout& layout,
              HeadExchange& the_heads, PlanWriter& the_writer);

  /// Tokens and rows of the keys that this rank has in a turn.
  std::int64_t tokens(int turn) { return counts_of(place.cp_rank_of(turn)).tokens; }
  std::int64_t rows(int turn) { return counts_of(place.cp_rank_of(turn)).rows; }
  std::int64_t max_rows();
  std::vector<Range> ranges(int turn);
  /// The rank of the same heads at another CP rank.
  int peer(int windows_on, int places_on) const {
    return grid.rank(place.neighbour(windows_on, places_on), grid.member(rank));
  }

  const Grid& grid;
  const int rank;
  const int groups;
  const RingCoordinates place;
  HeadExchange& heads;
  PlanWriter& writer;

 private:
  struct Counts {
    std::int64_t tokens = 0;
    std::int64_t rows = -1;  ///< not asked for yet
  };
  const Counts& counts_of(int cp_rank);

  /// Of every CP rank. Ranges are not kept: those of a thousand CP ranks may be millions.
  std::vector<Counts> counts_;
};

class RingGradients;

/// K and V pass from CP rank to CP rank (H. Liu et al., "Ring Attention with Blockwise
/// Transformers", 2023): in every turn inside a window, and from window to window once per round
/// in it, on the way during the whole round (D. Gu et al., "LoongTrain", 2024: DoubleRing). Two
/// buffers each: the next block arrives while one is computed on. CP ranks − 1 passes.
class Ring final : public ContextExchange {
 public:
  Ring(const Grid& grid, int rank, int window_size, const HeadLayout& layout, HeadExchange& heads,
       PlanWriter& writer);
  ~Ring() override;

  int turns() const override { return context_.place.turns(); }
  int blocks(int) const override { return 1; }
  std::vector<Range> ranges(int turn, int block) override;
  KeyPair keys(int turn, int block, int group) override;
  void fetch(int turn) override;
  void begin_gradients(std::vector<KeyPair> own) override;
  GradientTarget& target(int turn, int block, int group) override;
  void before_gradients(int turn) override;
  void after_gradients(int turn) override;
  LateSums finish_gradients(const std::function<void()>& meanwhile) override;

 private:
  /// `rows` of the buffer that a turn's keys lie in.
  KeyPair rows(int turn, int group, std::int64_t rows);
  void pass(int from_turn, int to_turn, int to, int from);

  RingContext context_;
  /// k or v, inner or outer, which of two, group → buffer.
  std::map<std::tuple<TensorRole, bool, int, int>, int> buffers_;
  std::unique_ptr<RingGradients> gradients_;
};

}  // namespace longca
