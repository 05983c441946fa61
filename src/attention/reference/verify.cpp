#include "attention/reference/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "attention/reference/results.h"
#include "core/error.h"
#include "core/thread_pool.h"

namespace longca {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One output in the sentences: its name, and what its tiles are called.
struct OutputName {
  const char* name;
  const char* head;   ///< "head" or "KV head"
  const char* token;  ///< "row" or "key"
};
constexpr OutputName kO{"o", "head", "row"};
constexpr OutputName kDq{"dq", "head", "row"};
constexpr OutputName kDk{"dk", "KV head", "key"};
constexpr OutputName kDv{"dv", "KV head", "key"};

/// One sentence about the worst tile of an output.
std::string describe(const OutputName& output, std::int64_t head, std::int64_t first,
                     std::int64_t end, const TileError& error, const TileBound& bound,
                     std::int64_t wrong, std::size_t tiles) {
  const std::string place = fmt::format("{} {}, {} {}, column {}", output.head, head, output.token,
                                        error.token, error.column);
  if (error.must_be_zero) {
    return fmt::format("{} is {:.4g} at {}, which must be exactly 0: the mask leaves it nothing",
                       output.name, error.found, place);
  }
  const std::string share = fmt::format("{} of {} tiles compared are wrong", wrong, tiles);
  if (!std::isfinite(error.found)) {
    return fmt::format("{} is {} at {}: not written, or not a number ({})", output.name,
                       std::abs(error.found), place, share);
  }
  const double norm = std::sqrt(error.squared);
  if (norm <= bound.norm) {
    return fmt::format("{} is {:.6g} instead of {:.6g} at {}: off by {:.3g}, bound {:.3g} ({})",
                       output.name, error.found, error.expected, place, error.largest,
                       bound.element, share);
  }
  return fmt::format(
      "{} of {} {}, {}s {} to {}, is off by {:.3g} in norm, bound {:.3g}, of {:.4g} ({})",
      output.name, output.head, head, output.token, first, end - 1, norm, bound.norm,
      std::sqrt(error.reference_squared), share);
}

/// Compares one output over the tiles selected and adds what it finds to the verdict. `expected(i)`
/// and `bound(i)` are of the i-th item, `reached(i)` says which tokens need not be 0.
template <typename Expected, typename Reached, typename Bound>
std::optional<double> compare_output(const OutputName& output, const ConstTensorView& x,
                                     const std::vector<Selection::Item>& items,
                                     const Expected& expected, const Reached& reached,
                                     const Bound& bound, Verdict& verdict) {
  if (items.empty()) return std::nullopt;
  std::vector<TileError> errors(items.size());
  ThreadPool::global().parallel_for(
      static_cast<std::int64_t>(items.size()), [&](std::int64_t item, int) {
        const auto i = static_cast<std::size_t>(item);
        errors[i] = compare_tile(x, items[i].head, items[i].tile * kTile, expected(i), reached(i),
                                 bound(i));
      });
  double squared = 0;
  double reference_squared = 0;
  std::int64_t wrong = 0;
  std::size_t worst = 0;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    squared += errors[i].squared;
    reference_squared += errors[i].reference_squared;
    if (!(errors[i].ratio <= 1)) ++wrong;
    if (errors[i].ratio > errors[worst].ratio) worst = i;
  }
  verdict.worst_ratio = std::max(verdict.worst_ratio, errors[worst].ratio);
  if (wrong > 0 && verdict.ok) {
    const std::int64_t first = items[worst].tile * kTile;
    verdict.ok = false;
    verdict.reason = describe(output, items[worst].head, first, std::min(first + kTile, x.tokens),
                              errors[worst], bound(worst), wrong, errors.size());
  }
  return reference_squared > 0 ? std::sqrt(squared / reference_squared) : std::sqrt(squared);
}

struct LseError {
  double error = 0, ratio = 0;
  std::int64_t head = 0, row = 0;
  double found = 0, expected = 0, bound = 0;
};

LseError compare_lse_row(double found, double expected, double bound) {
  LseError e{.found = found, .expected = expected, .bound = bound};
  if (found == expected) return e;  // both −∞, too
  e.error = std::abs(found - expected);
  if (!std::isfinite(found) || !std::isfinite(expected)) e.error = kInfinity;
  e.ratio = e.error < kInfinity ? e.error / bound : kInfinity;
  return e;
}

void check_shape(const char* name, const ConstTensorView& x, std::int64_t tokens, int heads,
                 const Problem& problem) {
  LONGCA_CHECK(x.tokens == tokens && x.heads == heads && x.dim == problem.head_dim,
               "{} is [{}, {}, {}] instead of [{}, {}, {}]", name, x.tokens, x.heads, x.dim, tokens,
               heads, problem.head_dim);
  LONGCA_CHECK(x.dtype == problem.dtype || x.dtype == DType::float32, "{} is {} in a problem of {}",
               name, to_string(x.dtype), to_string(problem.dtype));
}

/// Tokens of the tiles selected.
std::int64_t tokens_in(const std::vector<Selection::Item>& items, std::int64_t tokens) {
  std::int64_t sum = 0;
  for (const auto& item : items) sum += std::min(kTile, tokens - item.tile * kTile);
  return sum;
}

double share(double part, double whole) {
  return whole > 0 ? part / whole : 1.0;
}

}  // namespace

struct Reference::Impl {
  ReferenceProblem problem;
  ReferenceResults results;

  Impl(const Problem& shape, const Mask& mask, const Inputs& inputs, Selection selection)
      : problem{shape, mask, &inputs}, results(problem, std::move(selection)) {}

  const Selection& selection() const { return results.selection(); }
  // Elements compared and in all, of the outputs of each pass. An lse counts as one element.
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

  std::optional<double> compare_lse(const ConstLseView& lse, Verdict& verdict) const;
  void compare_dq(const ConstTensorView& dq, Verdict& verdict);
  void compare_dk_dv(const ConstTensorView& dk, const ConstTensorView& dv, Verdict& verdict) const;
};

std::optional<double> Reference::Impl::compare_lse(const ConstLseView& lse,
                                                   Verdict& verdict) const {
  const auto& items = selection().queries;
  if (items.empty()) return std::nullopt;
  LseError worst;
  double largest = 0;
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto& tile = results.query_tile(i);
    const std::int64_t first = items[i].tile * kTile;
    for (std::int64_t row = 0; row < std::min(kTile, lse.tokens - first); ++row) {
      LseError e =
          compare_lse_row(static_cast<double>(lse.head(items[i].head)[first + row]),
                          tile.rows.lse[row], lse_bound(tile.score_magnitude, tile.rows.lse[row]));
      largest = std::max(largest, e.error);
      if (!(e.ratio <= 1)) ++wrong;
      if (e.ratio > worst.ratio) {
        worst = e;
        worst.head = items[i].head;
        worst.row = first + row;
      }
    }
  }
  verdict.worst_ratio = std::max(verdict.worst_ratio, worst.ratio);
  if (wrong > 0 && verdict.ok) {
    verdict.ok = false;
    verdict.reason = fmt::format(
        "lse is {:.7g} instead of {:.7g} at head {}, row {}: off by {:.3g}, bound {:.3g} "
        "({} of {} rows compared are wrong)",
        worst.found, worst.expected, worst.head, worst.row, worst.error, worst.bound, wrong,
        tokens_in(items, lse.tokens));
  }
  return largest;
}

void Reference::Impl::compare_dq(const ConstTensorView& dq, Verdict& verdict) {
  results.compute_query_gradients();
  verdict.error_dq = compare_output(
      kDq, dq, selection().queries, [&](std::size_t i) { return results.dq(i); },
      [&](std::size_t i) { return results.query_tile(i).reached; },
      [&](std::size_t i) { return results.query_tile(i).dq; }, verdict);
}

void Reference::Impl::compare_dk_dv(const ConstTensorView& dk, const ConstTensorView& dv,
                                    Verdict& verdict) const {
  const auto reached = [&](std::size_t i) { return results.key_tile(i).reached; };
  verdict.error_dk = compare_output(
      kDk, dk, selection().keys, [&](std::size_t i) { return results.dk(i); }, reached,
      [&](std::size_t i) { return results.key_tile(i).dk; }, verdict);
  verdict.error_dv = compare_output(
      kDv, dv, selection().keys, [&](std::size_t i) { return results.dv(i); }, reached,
      [&](std::size_t i) { return results.key_tile(i).dv; }, verdict);
}

Reference::Reference(const Problem& problem, const Mask& mask, const Inputs& inputs,
                     VerifyBudget budget, std::uint64_t seed)
    : impl_(std::make_unique<Impl>(problem, mask, inputs,
                                   select_tiles(problem, mask, budget, seed))) {}

Reference::~Reference() = default;

Verdict Reference::check_forward(ConstTensorView o, const ConstLseView* lse) const {
  const Problem& shape = impl_->problem.shape;
  check_shape("o", o, shape.tokens_q, shape.heads_q, shape);
  impl_->results.compute_forward();
  const ReferenceResults& results = impl_->results;
  Verdict verdict;
  if (lse != nullptr) verdict.error_lse = impl_->compare_lse(*lse, verdict);
  verdict.error_o = compare_output(
      kO, o, impl_->selection().queries, [&](std::size_t i) { return results.o(i); },
      [&](std::size_t i) { return results.query_tile(i).reached; },
      [&](std::size_t i) { return results.query_tile(i).o; }, verdict);
  verdict.fraction = share(impl_->query_rows(), impl_->all_query_rows());
  return verdict;
}

Verdict Reference::check_backward(const BackwardArgs& args) const {
  const Problem& shape = impl_->problem.shape;
  check_shape("dq", args.dq, shape.tokens_q, shape.heads_q, shape);
  check_shape("dk", args.dk, shape.tokens_k, shape.heads_k, shape);
  check_shape("dv", args.dv, shape.tokens_k, shape.heads_k, shape);
  Verdict verdict;
  impl_->compare_dq(args.dq, verdict);
  double compared = impl_->query_rows();
  const bool drawn_tiles = impl_->selection().mode == Selection::Mode::tiles;
  if (!drawn_tiles) {
    impl_->results.compute_key_gradients();
  } else if (args.lse.data != nullptr) {
    impl_->results.compute_key_gradients_from(args.o, args.lse);
  }
  if (!drawn_tiles || args.lse.data != nullptr) {
    impl_->compare_dk_dv(args.dk, args.dv, verdict);
    compared += 2 * impl_->key_rows();
  }
  verdict.fraction = share(compared, impl_->all_query_rows() + 2 * impl_->all_key_rows());
  return verdict;
}

Verdict Reference::check_backward(ConstTensorView dq, ConstTensorView dk,
                                  ConstTensorView dv) const {
  const auto writable = [](const ConstTensorView& x) {
    TensorView view;
    view.data = const_cast<void*>(x.data);  // BackwardArgs holds outputs; nothing here writes
    view.dtype = x.dtype;
    view.tokens = x.tokens;
    view.heads = x.heads;
    view.dim = x.dim;
    view.token_stride = x.token_stride;
    view.head_stride = x.head_stride;
    return view;
  };
  BackwardArgs args;
  args.dq = writable(dq);
  args.dk = writable(dk);
  args.dv = writable(dv);
  return check_backward(args);
}

double Reference::fraction() const {
  const double dim = impl_->problem.shape.head_dim;
  const double per_query_row = 2 * dim + 1;  // o, dq and lse
  const double per_key_row = 2 * dim;
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
      // All bits set are a NaN of every dtype.
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

}  // namespace longca
