#include "parallel/schemes/all_schemes.h"
#include "parallel/schemes/build/build_plan.h"
#include "parallel/schemes/build/factor.h"
#include "parallel/schemes/build/formulas.h"

namespace longca {
namespace {

class Usp final : public Scheme {
 public:
  std::string name() const override { return "usp"; }
  std::string description() const override {
    return "Ulysses among `factor` neighbours, which share a place in a ring of the others";
  }
  std::string paper() const override {
    return "J. Fang, S. Zhao, \"USP: A Unified Sequence Parallelism Approach for Long Context "
           "Generative AI\", arXiv:2405.07719, 2024";
  }
  ShardKind published_shard() const override { return ShardKind::zigzag; }
  /// Equal areas on every mask, not only on causal ones.
  ShardKind best_shard() const override { return ShardKind::balanced; }
  bool has_factor() const override { return true; }
  int factor(const ParallelProblem& problem) const override { return head_ways(problem); }

  GridShape grid_shape(const ParallelProblem& problem) const override {
    return {head_ways(problem), true};
  }

  Support supports(const ParallelProblem& problem) const override { return check_factor(problem); }

  RankPlan plan(const ParallelProblem& problem, int rank) const override {
    return build_plan(problem, {grid_shape(problem), ContextKind::ring, 0}, rank);
  }

  std::int64_t formula_bytes(const ParallelProblem& problem, int rank,
                             bool backward) const override {
    const Grid grid(problem, grid_shape(problem));
    return head_exchange_bytes(problem, grid, rank, backward) +
           ring_bytes(problem, grid, grid.cp_ranks(), rank, backward);
  }
};

}  // namespace

std::unique_ptr<Scheme> make_usp() {
  return std::make_unique<Usp>();
}

}  // namespace longca
