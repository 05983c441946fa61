#include <algorithm>

#include "parallel/schemes/all_schemes.h"
#include "parallel/schemes/build/build_plan.h"
#include "parallel/schemes/build/factor.h"
#include "parallel/schemes/build/formulas.h"

namespace longca {
namespace {

/// CP ranks of a window: as many as a node holds of one member's ring, or the next smaller divisor
/// of their number.
int window_size(const ParallelProblem& problem, const GridShape& shape) {
  const int cp_ranks = problem.ranks / shape.head_ways;
  const int in_node = problem.ranks_per_node / (shape.head_first ? shape.head_ways : 1);
  int size = std::clamp(in_node, 1, cp_ranks);
  while (cp_ranks % size != 0) --size;
  return size;
}

/// What a rank sends out of its node, in units of head_dim · rows per rank elements: all of the
/// outer passes, and of the head exchange what goes to members on other nodes.
double elements_between_nodes(const ParallelProblem& problem, const GridShape& shape) {
  const Problem& p = problem.problem;
  const int cp_ranks = problem.ranks / shape.head_ways;
  const int windows = cp_ranks / window_size(problem, shape);
  const double ring = 2.0 * (windows - 1) * std::max(p.heads_k, shape.head_ways);
  const int apart = shape.head_first ? 1 : cp_ranks;  // ranks between two members
  const int members_in_node = std::clamp(problem.ranks_per_node / apart, 1, shape.head_ways);
  const double heads = 2.0 * (p.heads_q + std::max(p.heads_k, shape.head_ways)) / shape.head_ways;
  return ring + heads * (shape.head_ways - members_in_node);
}

Composition composition_of(const ParallelProblem& problem) {
  GridShape shape{head_ways(problem), true};
  const GridShape context_first{shape.head_ways, false};
  if (elements_between_nodes(problem, context_first) < elements_between_nodes(problem, shape)) {
    shape = context_first;
  }
  return {shape, ContextKind::ring, window_size(problem, shape)};
}

class LoongTrain final : public Scheme {
 public:
  std::string name() const override { return "loongtrain"; }
  std::string description() const override {
    return "heads × context with rings inside nodes and a ring of nodes around them (DoubleRing)";
  }
  std::string paper() const override {
    return "D. Gu et al., \"LoongTrain: Efficient Training of Long-Sequence LLMs with "
           "Head-Context Parallelism\", arXiv:2406.18485, 2024";
  }
  ShardKind published_shard() const override { return ShardKind::zigzag; }
  /// Equal areas on every mask, not only on causal ones.
  ShardKind best_shard() const override { return ShardKind::balanced; }
  bool has_factor() const override { return true; }
  int factor(const ParallelProblem& problem) const override { return head_ways(problem); }

  GridShape grid_shape(const ParallelProblem& problem) const override {
    return composition_of(problem).shape;
  }

  Support supports(const ParallelProblem& problem) const override { return check_factor(problem); }

  /// Neighbours are the members of a CP rank (head-first) or the CP ranks of a member
  /// (context-first), whichever sends less from node to node.
  RankPlan plan(const ParallelProblem& problem, int rank) const override {
    const Composition composition = composition_of(problem);
    RankPlan plan = build_plan(problem, composition, rank);
    plan.notes.emplace_back(composition.shape.head_first ? "placement: head-first"
                                                         : "placement: context-first");
    return plan;
  }

  std::int64_t formula_bytes(const ParallelProblem& problem, int rank,
                             bool backward) const override {
    const Composition composition = composition_of(problem);
    const Grid grid(problem, composition.shape);
    return head_exchange_bytes(problem, grid, rank, backward) +
           ring_bytes(problem, grid, composition.window, rank, backward);
  }
};

}  // namespace

std::unique_ptr<Scheme> make_loongtrain() {
  return std::make_unique<LoongTrain>();
}

}  // namespace longca
