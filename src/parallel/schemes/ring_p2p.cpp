#include "parallel/schemes/all_schemes.h"
#include "parallel/schemes/build/build_plan.h"
#include "parallel/schemes/build/factor.h"
#include "parallel/schemes/build/formulas.h"

namespace longca {
namespace {

class RingP2P final : public Scheme {
 public:
  std::string name() const override { return "ring_p2p"; }
  std::string description() const override {
    return "K and V pass around a ring of ranks; backward dK and dV follow one hop behind";
  }
  std::string paper() const override {
    return "H. Liu, M. Zaharia, P. Abbeel, \"Ring Attention with Blockwise Transformers for "
           "Near-Infinite Context\", arXiv:2310.01889, 2023";
  }
  /// TransformerEngine's, where documents are packed.
  ShardKind published_shard() const override { return ShardKind::document_zigzag; }
  /// Equal areas on every mask, without padding, in chunks that kernels' tiles fit into.
  ShardKind best_shard() const override { return ShardKind::balanced; }

  GridShape grid_shape(const ParallelProblem& /*problem*/) const override { return {}; }

  Support supports(const ParallelProblem& problem) const override { return check_ranks(problem); }

  RankPlan plan(const ParallelProblem& problem, int rank) const override {
    return build_plan(problem, {}, rank);
  }

  std::int64_t formula_bytes(const ParallelProblem& problem, int rank,
                             bool backward) const override {
    return ring_bytes(problem, Grid(problem, grid_shape(problem)), problem.ranks, rank, backward);
  }
};

}  // namespace

std::unique_ptr<Scheme> make_ring_p2p() {
  return std::make_unique<RingP2P>();
}

}  // namespace longca
