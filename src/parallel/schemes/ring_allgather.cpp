#include "parallel/schemes/all_schemes.h"
#include "parallel/schemes/build/build_plan.h"
#include "parallel/schemes/build/factor.h"
#include "parallel/schemes/build/formulas.h"

namespace longca {
namespace {

class RingAllGather final : public Scheme {
 public:
  std::string name() const override { return "ring_allgather"; }
  std::string description() const override {
    return "K and V are gathered in stages, computed on as they arrive; dK and dV reduce-scattered";
  }
  std::string paper() const override {
    return "A. Grattafiori et al., \"The Llama 3 Herd of Models\", arXiv:2407.21783, 2024";
  }
  ShardKind published_shard() const override { return ShardKind::zigzag; }
  /// What travels does not depend on the mask, so only areas count.
  ShardKind best_shard() const override { return ShardKind::balanced; }

  GridShape grid_shape(const ParallelProblem& /*problem*/) const override { return {}; }

  Support supports(const ParallelProblem& problem) const override { return check_ranks(problem); }

  RankPlan plan(const ParallelProblem& problem, int rank) const override {
    return build_plan(problem, {{}, ContextKind::all_gather, 0}, rank);
  }

  std::int64_t formula_bytes(const ParallelProblem& problem, int rank,
                             bool backward) const override {
    return gather_bytes(problem, Grid(problem, grid_shape(problem)), rank, backward);
  }
};

}  // namespace

std::unique_ptr<Scheme> make_ring_allgather() {
  return std::make_unique<RingAllGather>();
}

}  // namespace longca
