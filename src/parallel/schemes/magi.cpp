#include "parallel/schemes/all_schemes.h"
#include "parallel/schemes/build/build_plan.h"
#include "parallel/schemes/build/factor.h"
#include "parallel/schemes/build/formulas.h"

namespace longca {
namespace {

class Magi final : public Scheme {
 public:
  std::string name() const override { return "magi"; }
  std::string description() const override {
    return "only the keys that a rank's queries see are cast to it, in stages; dK, dV reduced back";
  }
  std::string paper() const override {
    return "Z. Tao, Y. Huang, \"MagiAttention: A Distributed Attention Towards Linear Scalability "
           "for Ultra-Long Context, Heterogeneous Mask Training\", 2025";
  }
  ShardKind published_shard() const override { return ShardKind::balanced; }
  ShardKind best_shard() const override { return ShardKind::document_balanced; }

  GridShape grid_shape(const ParallelProblem& /*problem*/) const override {
    return {.ordered_by_node = true};
  }

  Support supports(const ParallelProblem& problem) const override { return check_ranks(problem); }

  RankPlan plan(const ParallelProblem& problem, int rank) const override {
    return build_plan(problem, {grid_shape(problem), ContextKind::group_cast, 0}, rank);
  }

  std::int64_t formula_bytes(const ParallelProblem& problem, int rank,
                             bool backward) const override {
    return cast_bytes(problem, Grid(problem, grid_shape(problem)), rank, backward);
  }
};

}  // namespace

std::unique_ptr<Scheme> make_magi() {
  return std::make_unique<Magi>();
}

}  // namespace longca
