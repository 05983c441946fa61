#include "attention/reference/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "attention/reference/comparison.h"
#include "attention/reference/results.h"
#include "attention/reference/small_weights.h"
#include "core/error.h"
#ifdef LONGCA_WITH_CUDA
#include "attention/reference/cuda/cuda_reference.h"
#endif

namespace longca {

struct Reference::Impl {
  ReferenceProblem problem;
  VerifyBudget budget;
  ReferenceResults results;

  Impl(const Problem& shape, const Mask& mask, const Inputs& inputs, const VerifyBudget& may_take,
       std::uint64_t seed)
      : problem{shape, mask, &inputs},
        budget(may_take),
        results(problem, select_tiles(shape, mask, may_take, seed)) {}

  const Selection& selection() const { return results.selection(); }
  bool draws_tiles() const { return selection().mode == Selection::Mode::tiles; }

  // Rows compared and in total.
  double query_rows() const {
    return static_cast<double>(tokens_in(selection().queries, problem.shape.tokens_q));
  }
  double key_rows() const {
    return static_cast<double>(tokens_in(selection().keys, problem.shape.tokens_k));
  }
  double all_query_rows() const {
    return static_cast<double>(problem.shape.tokens_q) * problem.shape.heads_q;
  }
  double all_key_rows() const {
    return static_cast<double>(problem.shape.tokens_k) * problem.shape.heads_k;
  }

  /// Elements of dq, and of dk and dv, in as many rows.
  double query_gradients(double rows) const { return problem.shape.head_dim * rows; }
  double key_gradients(double rows) const {
    return (problem.shape.head_dim + problem.shape.value_dim()) * rows;
  }

  std::optional<double> compare_lse_rows(const ConstLseView& lse, Verdict& verdict) const {
    return compare_lse(
        lse, selection().queries,
        [&](std::size_t i) {
          const auto& tile = results.query_tile(i);
          const auto [head, number] = selection().queries[i];
          return ExpectedLse{tile.rows.lse, tile.score_magnitude, problem.mean_keys(head, number)};
        },
        [&](std::int64_t head, std::int64_t row) {
          return share_of_small_weights(problem, head, row);
        },
        verdict);
  }
  std::optional<double> compare_queries(
      const OutputName& output, const ConstTensorView& x,
      std::span<const double> (ReferenceResults::*values)(std::size_t) const,
      TileBound ReferenceResults::QueryTile::*bound, Verdict& verdict) const {
    return compare_output(
        output, x, selection().queries,
        [&](std::size_t i) {
          const auto& tile = results.query_tile(i);
          return ExpectedTile{(results.*values)(i), tile.reached, tile.*bound};
        },
        verdict);
  }
  std::optional<double> compare_keys(
      const OutputName& output, const ConstTensorView& x,
      std::span<const double> (ReferenceResults::*values)(std::size_t) const,
      TileBound ReferenceResults::KeyTile::*bound, Verdict& verdict) const {
    return compare_output(
        output, x, selection().keys,
        [&](std::size_t i) {
          const auto& tile = results.key_tile(i);
          return ExpectedTile{(results.*values)(i), tile.reached, tile.*bound};
        },
        verdict);
  }
};

Reference::Reference(const Problem& problem, const Mask& mask, const Inputs& inputs,
                     VerifyBudget budget, std::uint64_t seed)
    : impl_(std::make_unique<Impl>(problem, mask, inputs, budget, seed)) {}

Reference::~Reference() = default;

Verdict Reference::check_forward(ConstTensorView o, const ConstLseView* lse) const {
  const Problem& shape = impl_->problem.shape;
  check_shape(OutputKind::o, o, shape);
  impl_->results.compute_forward();
  Verdict of_lse, of_o;
  if (lse != nullptr) of_lse.error_lse = impl_->compare_lse_rows(*lse, of_lse);
  of_o.error_o = impl_->compare_queries({"o", "head", "row"}, o, &ReferenceResults::o,
                                        &ReferenceResults::QueryTile::o, of_o);
  Verdict verdict = forward_verdict(of_lse, of_o);
  verdict.fraction = share(impl_->query_rows(), impl_->all_query_rows());
  return verdict;
}

std::string Reference::why_gradients_need_lse() const {
  if (!impl_->draws_tiles()) return {};
  return fmt::format(
      "a verify_budget_s of {} has room for tiles of a head only, whose dk and dv are computed "
      "from the kernel's LSE",
      impl_->budget.seconds);
}

Verdict Reference::check_backward(const BackwardArgs& args) const {
  const Problem& shape = impl_->problem.shape;
  check_shape(OutputKind::dq, args.dq, shape);
  check_shape(OutputKind::dk, args.dk, shape);
  check_shape(OutputKind::dv, args.dv, shape);
  LONGCA_CHECK(!shape.sink || args.dsink != nullptr, "no dsink of a problem with sinks");
  LONGCA_CHECK(args.lse.data != nullptr || !impl_->draws_tiles(), "no lse to check dk and dv");
  ReferenceResults& results = impl_->results;
  results.compute_query_gradients();
  Verdict verdict;
  verdict.error_dq = impl_->compare_queries({"dq", "head", "row"}, args.dq, &ReferenceResults::dq,
                                            &ReferenceResults::QueryTile::dq, verdict);
  if (impl_->draws_tiles()) {
    results.compute_key_gradients_from(args.o, args.lse);
  } else {
    results.compute_key_gradients();
  }
  verdict.error_dk = impl_->compare_keys({"dk", "KV head", "key"}, args.dk, &ReferenceResults::dk,
                                         &ReferenceResults::KeyTile::dk, verdict);
  verdict.error_dv = impl_->compare_keys({"dv", "KV head", "key"}, args.dv, &ReferenceResults::dv,
                                         &ReferenceResults::KeyTile::dv, verdict);
  verdict.error_dsink = compare_sinks(args.dsink, results.sink_gradients(), verdict);
  const double compared =
      impl_->query_gradients(impl_->query_rows()) + impl_->key_gradients(impl_->key_rows());
  verdict.fraction = share(compared, impl_->query_gradients(impl_->all_query_rows()) +
                                         impl_->key_gradients(impl_->all_key_rows()));
  return verdict;
}

CheckedHeads Reference::checked_heads() const {
  return heads_of(impl_->problem.shape, impl_->selection());
}

double Reference::fraction() const {
  const Problem& shape = impl_->problem.shape;
  const double per_key_row = shape.head_dim + shape.value_dim();  // dk and dv
  const double per_query_row = per_key_row + 1;                   // dq, o and lse
  return share(per_query_row * impl_->query_rows() + per_key_row * impl_->key_rows(),
               per_query_row * impl_->all_query_rows() + per_key_row * impl_->all_key_rows());
}

std::int64_t Reference::bytes() const {
  return impl_->results.bytes();
}

std::int64_t Reference::estimate_bytes(const Problem& problem, const Mask& mask,
                                       VerifyBudget budget) {
  return ReferenceResults::bytes_for(problem, select_tiles(problem, mask, budget, 0));
}

void poison(const TensorView& tensor) {
  for (std::int64_t token = 0; token < tensor.tokens; ++token) {
    for (std::int64_t head = 0; head < tensor.heads; ++head) {
      // All bits set is a NaN in every dtype.
      std::memset(
          tensor.row<char>(0, 0) +
              (token * tensor.token_stride + head * tensor.head_stride) * size_of(tensor.dtype),
          0xff, static_cast<std::size_t>(tensor.dim * size_of(tensor.dtype)));
    }
  }
}

void poison(const LseView& lse) {
  for (std::int64_t head = 0; head < lse.heads; ++head) {
    std::fill_n(lse.head(head), lse.tokens, std::numeric_limits<float>::quiet_NaN());
  }
}

std::unique_ptr<Verifier> make_verifier(const Problem& problem, const Mask& mask,
                                        const Inputs& inputs, VerifyBudget budget,
                                        std::uint64_t seed) {
#ifdef LONGCA_WITH_CUDA
  if (problem.device == DeviceKind::cuda) {
    return std::make_unique<CudaReference>(problem, mask, inputs, budget, seed);
  }
#endif
  LONGCA_CHECK(problem.device == DeviceKind::cpu, "no verifier for {}", to_string(problem.device));
  return std::make_unique<Reference>(problem, mask, inputs, budget, seed);
}

std::int64_t estimate_verifier_bytes(const Problem& problem, const Mask& mask,
                                     VerifyBudget budget) {
#ifdef LONGCA_WITH_CUDA
  if (problem.device == DeviceKind::cuda) {
    return CudaReference::estimate_bytes(problem, mask, budget);
  }
#endif
  return Reference::estimate_bytes(problem, mask, budget);
}

}  // namespace longca
