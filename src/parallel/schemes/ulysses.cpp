#include "parallel/schemes/all_schemes.h"
#include "parallel/schemes/build/build_plan.h"
#include "parallel/schemes/build/factor.h"
#include "parallel/schemes/build/formulas.h"
#include "parallel/schemes/build/head_layout.h"

namespace longca {
namespace {

class Ulysses final : public Scheme {
 public:
  std::string name() const override { return "ulysses"; }
  std::string description() const override {
    return "all-to-all from tokens to heads and back; each rank has all tokens of its heads";
  }
  std::string paper() const override {
    return "S. A. Jacobs et al., \"DeepSpeed Ulysses: System Optimizations for Enabling Training "
           "of Extreme Long Sequence Transformer Models\", arXiv:2309.14509, 2023";
  }
  ShardKind published_shard() const override { return ShardKind::contiguous; }
  /// Each rank computes all tokens, so who owns which changes nothing but padding.
  ShardKind best_shard() const override { return ShardKind::contiguous; }

  GridShape grid_shape(const ParallelProblem& problem) const override {
    return {problem.ranks, true};
  }

  Support supports(const ParallelProblem& problem) const override {
    if (Support ranks = check_ranks(problem); !ranks.ok()) return ranks;
    return check_heads(problem.problem.heads_q, problem.problem.heads_k, problem.ranks);
  }

  RankPlan plan(const ParallelProblem& problem, int rank) const override {
    return build_plan(problem, {grid_shape(problem)}, rank);
  }

  std::int64_t formula_bytes(const ParallelProblem& problem, int rank,
                             bool backward) const override {
    return head_exchange_bytes(problem, Grid(problem, grid_shape(problem)), rank, backward);
  }
};

}  // namespace

std::unique_ptr<Scheme> make_ulysses() {
  return std::make_unique<Ulysses>();
}

}  // namespace longca
