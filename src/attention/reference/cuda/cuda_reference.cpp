#include "attention/reference/cuda/cuda_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "attention/reference/comparison.h"
#include "attention/reference/cuda/copy_head.h"
#include "attention/reference/cuda/device_results.h"
#include "attention/reference/cuda/differences.h"
#include "attention/reference/cuda/self_check.h"
#include "attention/reference/drawn_tiles.h"
#include "attention/reference/small_weights.h"
#include "core/error.h"

namespace longca {

struct CudaReference::Impl {
  ReferenceProblem problem;
  std::uint64_t seed;
  Selection selection;
  DeviceResults results;
  Buffer differences;
  bool forward_checked = false;  ///< the reference itself, against float64
  bool gradients_checked = false;
  bool forward_ok = true;  ///< the verdict of the last check_forward

  Impl(const Problem& shape, const Mask& mask, const Inputs& inputs, const DrawnTiles& drawn,
       std::uint64_t random_seed)
      : problem{shape, mask, &inputs},
        seed(random_seed),
        selection(selection_of(shape, drawn)),
        results(problem, drawn),
        differences(Device::get(DeviceKind::cuda).memory(), difference_bytes(selection)) {}

  static std::int64_t difference_bytes(const Selection& selection) {
    return static_cast<std::int64_t>(std::max(selection.queries.size(), selection.keys.size()) *
                                     sizeof(TileDifference));
  }

  // A self-check that fails throws for every kernel of the problem, and so is repeated.
  void compute_forward() {
    results.compute_forward();
    if (!forward_checked) check_forward_samples(problem, results, seed);
    forward_checked = true;
  }
  /// dK and dV of drawn tiles come from the kernel's o and lse; without an lse, and for whole
  /// heads, from the reference's own rows.
  void compute_gradients(const BackwardArgs& args) {
    compute_forward();
    results.compute_query_gradients();
    const bool given = !results.whole() && args.lse.data != nullptr;
    given ? results.compute_key_gradients_from(args.o, args.lse) : results.compute_key_gradients();
    // Wrong rows of a kernel may make float32 and float64 differ, which is not the reference's
    // fault.
    if (gradients_checked || (given && !forward_ok)) return;
    check_gradient_samples(problem, results, seed);
    gradients_checked = true;
  }

  bool of_queries(const DeviceResults::Output& expected) const {
    return &expected == &results.o() || &expected == &results.dq();
  }

  TileBound bound(const DeviceResults::Output& expected, std::size_t i) const {
    const TileStatistics& tile = expected.statistics[expected.statistics_index(i)];
    std::int64_t draws = std::popcount(tile.seen);
    if (!of_queries(expected)) {
      // Independent rounding errors: one per key or per query row, whichever are fewer.
      draws = std::min(draws, problem.shape.tokens_q * problem.shape.group_size());
    }
    return make_bound(tile.squared, tile.error_squared, tile.largest, tile.terms, draws,
                      problem.shape.dtype);
  }

  std::vector<TileError> errors_of(const ConstTensorView& x,
                                   const DeviceResults::Output& expected) const {
    Device& device = Device::get(DeviceKind::cuda);
    const auto* statistics = expected.device_statistics.as<TileStatistics>();
    find_differences({x, expected.values.as<float>(), statistics, expected.device_heads,
                      static_cast<int>(expected.heads.size()), expected.device_drawn,
                      static_cast<int>(expected.drawn.size()), differences.as<TileDifference>()},
                     static_cast<cudaStream_t>(device.stream()));
    std::vector<TileDifference> found(expected.heads.size() * expected.drawn.size());
    device.copy(found.data(), differences.data(),
                static_cast<std::int64_t>(found.size() * sizeof(TileDifference)));
    std::vector<TileError> errors(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      errors[i].squared = found[i].squared;
      errors[i].reference_squared = found[i].reference_squared;
      errors[i].largest = found[i].largest;
      errors[i].must_be_zero = found[i].forbidden != 0;
      errors[i].ratio = error_ratio(errors[i], bound(expected, i));
    }
    return errors;
  }

  /// Compares one tile again, on the host, to locate its worst element.
  JudgedTile judge_tile(const ConstTensorView& x, const DeviceResults::Output& expected,
                        const Selection::Item& item, std::size_t i) const {
    const std::int64_t first = item.tile * kTile;
    const std::int64_t tokens = std::min(kTile, x.tokens - first);
    const HostTensor found = copy_tokens(x, item.head, first, tokens);
    std::vector<float> values(static_cast<std::size_t>(tokens * x.dim));
    Device::get(DeviceKind::cuda)
        .copy(values.data(), expected.values.as<float>() + expected.row_of(i) * x.dim,
              static_cast<std::int64_t>(values.size() * sizeof(float)));
    const std::vector<double> exact(values.begin(), values.end());
    JudgedTile judged{{}, bound(expected, i)};
    const std::uint64_t seen = expected.statistics[expected.statistics_index(i)].seen;
    judged.error = compare_tile(found.view(), 0, 0, exact, seen, judged.bound);
    judged.error.token += first;
    return judged;
  }

  std::optional<double> compare(const OutputName& output, const ConstTensorView& x,
                                const DeviceResults::Output& expected, Verdict& verdict) const {
    const auto& items = of_queries(expected) ? selection.queries : selection.keys;
    if (items.empty()) return std::nullopt;
    const std::vector<TileError> errors = errors_of(x, expected);
    return judge_output(
        output, x.tokens, items, errors,
        [&](std::size_t i) { return judge_tile(x, expected, items[i], i); }, verdict);
  }

  /// `dsink` is in device memory.
  std::optional<double> compare_sink_gradients(const float* dsink, Verdict& verdict) const {
    if (!problem.shape.sink) return std::nullopt;
    std::vector<float> found(static_cast<std::size_t>(problem.shape.heads_q));
    Device::get(DeviceKind::cuda)
        .copy(found.data(), dsink, static_cast<std::int64_t>(found.size() * sizeof(float)));
    return compare_sinks(found.data(), results.sink_gradients(), verdict);
  }

  std::optional<double> compare_lse_rows(const ConstLseView& lse, Verdict& verdict) const {
    Device& device = Device::get(DeviceKind::cuda);
    const HostLse found(lse.heads, lse.tokens);
    for (const int head : results.heads_q()) {
      device.copy(found.view().head(head), lse.head(head), lse.tokens * 4);
    }
    const DeviceResults::Output& o = results.o();
    std::vector<double> expected(results.rows().size());
    std::ranges::transform(results.rows(), expected.begin(), &RowStatistic::lse);
    return compare_lse(
        found.view(), selection.queries,
        [&](std::size_t i) {
          return ExpectedLse{
              std::span(expected).subspan(static_cast<std::size_t>(o.row_of(i))),
              o.statistics[o.statistics_index(i)].score,
              problem.mean_keys(selection.queries[i].head, selection.queries[i].tile)};
        },
        [&](std::int64_t head, std::int64_t row) {
          return share_of_small_weights(problem, head, row);
        },
        verdict);
  }

  // Rows compared and in total.
  double query_rows() const {
    return static_cast<double>(tokens_in(selection.queries, problem.shape.tokens_q));
  }
  double key_rows() const {
    return static_cast<double>(tokens_in(selection.keys, problem.shape.tokens_k));
  }
  double all_query_rows() const {
    return static_cast<double>(problem.shape.tokens_q) * problem.shape.heads_q;
  }
  double all_key_rows() const {
    return static_cast<double>(problem.shape.tokens_k) * problem.shape.heads_k;
  }
};

CudaReference::CudaReference(const Problem& problem, const Mask& mask, const Inputs& inputs,
                             VerifyBudget budget, std::uint64_t seed)
    : impl_(std::make_unique<Impl>(problem, mask, inputs, draw_tiles(problem, mask, budget, seed),
                                   seed)) {}

CudaReference::~CudaReference() = default;

Verdict CudaReference::check_forward(ConstTensorView o, const ConstLseView* lse) const {
  const Problem& shape = impl_->problem.shape;
  check_shape(OutputKind::o, o, shape);
  impl_->compute_forward();
  Verdict of_lse, of_o;
  if (lse != nullptr) of_lse.error_lse = impl_->compare_lse_rows(*lse, of_lse);
  of_o.error_o = impl_->compare({"o", "head", "row"}, o, impl_->results.o(), of_o);
  Verdict verdict = forward_verdict(of_lse, of_o);
  verdict.fraction = share(impl_->query_rows(), impl_->all_query_rows());
  impl_->forward_ok = verdict.ok;
  return verdict;
}

Verdict CudaReference::check_backward(const BackwardArgs& args) const {
  const Problem& shape = impl_->problem.shape;
  check_shape(OutputKind::dq, args.dq, shape);
  check_shape(OutputKind::dk, args.dk, shape);
  check_shape(OutputKind::dv, args.dv, shape);
  LONGCA_CHECK(!shape.sink || args.dsink != nullptr, "no dsink of a problem with sinks");
  impl_->compute_gradients(args);
  const DeviceResults& results = impl_->results;
  Verdict verdict;
  verdict.error_dq = impl_->compare({"dq", "head", "row"}, args.dq, results.dq(), verdict);
  verdict.error_dk = impl_->compare({"dk", "KV head", "key"}, args.dk, results.dk(), verdict);
  verdict.error_dv = impl_->compare({"dv", "KV head", "key"}, args.dv, results.dv(), verdict);
  verdict.error_dsink = impl_->compare_sink_gradients(args.dsink, verdict);
  const double per_query = shape.head_dim;                    // dq
  const double per_key = shape.head_dim + shape.value_dim();  // dk and dv
  verdict.fraction = share(per_query * impl_->query_rows() + per_key * impl_->key_rows(),
                           per_query * impl_->all_query_rows() + per_key * impl_->all_key_rows());
  return verdict;
}

CheckedHeads CudaReference::checked_heads() const {
  return heads_of(impl_->problem.shape, impl_->selection);
}

double CudaReference::fraction() const {
  return share(impl_->query_rows() + impl_->key_rows(),
               impl_->all_query_rows() + impl_->all_key_rows());
}

std::int64_t CudaReference::bytes() const {
  return impl_->results.bytes() + impl_->differences.bytes();
}

std::int64_t CudaReference::estimate_bytes(const Problem& problem, const Mask& mask,
                                           VerifyBudget budget) {
  const auto heads = static_cast<std::int64_t>(draw_tiles(problem, mask, budget, 0).heads_k.size());
  return DeviceResults::bytes_for(problem, mask, heads);
}

}  // namespace longca
