#include "attention/reference/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/error.h"
#include "core/thread_pool.h"

namespace longca {
namespace {

constexpr double kNotFinite = std::numeric_limits<double>::infinity();

/// A sentence about the worst tile of an output.
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

struct LseError {
  double error = 0, ratio = 0;
  std::int64_t head = 0, row = 0;
  double found = 0, expected = 0, bound = 0;

  void judge(double its_bound) {
    bound = its_bound;
    ratio = error < kNotFinite ? error / bound : kNotFinite;
  }
};

LseError compare_lse_row(double found, double expected, double bound) {
  LseError e{.found = found, .expected = expected, .bound = bound};
  if (found == expected) return e;  // both −∞, too
  e.error = std::abs(found - expected);
  if (!std::isfinite(found) || !std::isfinite(expected)) e.error = kNotFinite;
  e.judge(bound);
  return e;
}

/// Judges rows beyond lse_bound anew, with what a float32 sum may make of their small weights.
void allow_small_weights(std::vector<LseError>& rows, const ShareOfSmallWeights& small) {
  if (rows.size() > kRecomputedRows) return;
  for (LseError& e : rows) {
    if (e.error < kNotFinite) e.judge(e.bound + small(e.head, e.row));
  }
}

}  // namespace

void check_shape(OutputKind output, const ConstTensorView& x, const Problem& problem) {
  constexpr const char* kNames[] = {"o", "dq", "dk", "dv"};
  const char* const name = kNames[static_cast<std::size_t>(output)];
  const bool of_queries = output == OutputKind::o || output == OutputKind::dq;
  const bool of_values = output == OutputKind::o || output == OutputKind::dv;
  const std::int64_t tokens = of_queries ? problem.tokens_q : problem.tokens_k;
  const int heads = of_queries ? problem.heads_q : problem.heads_k;
  const int dim = of_values ? problem.value_dim() : problem.head_dim;
  LONGCA_CHECK(x.tokens == tokens && x.heads == heads && x.dim == dim,
               "{} is [{}, {}, {}] instead of [{}, {}, {}]", name, x.tokens, x.heads, x.dim, tokens,
               heads, dim);
  LONGCA_CHECK(x.dtype == problem.dtype || x.dtype == DType::float32, "{} is {} in a problem of {}",
               name, to_string(x.dtype), to_string(problem.dtype));
}

std::optional<double> compare_output(const OutputName& output, const ConstTensorView& x,
                                     const std::vector<Selection::Item>& items,
                                     const ExpectedTiles& expected, Verdict& verdict) {
  if (items.empty()) return std::nullopt;
  std::vector<TileError> errors(items.size());
  const auto compare = [&](std::int64_t item, int) {
    const auto i = static_cast<std::size_t>(item);
    const ExpectedTile tile = expected(i);
    errors[i] = compare_tile(x, items[i].head, items[i].tile * kTile, tile.values, tile.reached,
                             tile.bound);
  };
  ThreadPool::global().parallel_for(static_cast<std::int64_t>(items.size()), compare);
  return judge_output(
      output, x.tokens, items, errors,
      [&](std::size_t i) {
        return JudgedTile{errors[i], expected(i).bound};
      },
      verdict);
}

std::optional<double> judge_output(const OutputName& output, std::int64_t tokens,
                                   const std::vector<Selection::Item>& items,
                                   std::span<const TileError> errors,
                                   const std::function<JudgedTile(std::size_t)>& judged,
                                   Verdict& verdict) {
  if (items.empty()) return std::nullopt;
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
    const auto [error, bound] = judged(worst);
    verdict.reason = describe(output, items[worst].head, first, std::min(first + kTile, tokens),
                              error, bound, wrong, errors.size());
  }
  return std::sqrt(reference_squared > 0 ? squared / reference_squared : squared);
}

std::optional<double> compare_lse(const ConstLseView& lse,
                                  const std::vector<Selection::Item>& items,
                                  const std::function<ExpectedLse(std::size_t)>& expected,
                                  const ShareOfSmallWeights& small, Verdict& verdict) {
  if (items.empty()) return std::nullopt;
  double largest = 0;
  std::int64_t rows = 0;
  std::vector<LseError> beyond;  // of lse_bound
  for (std::size_t i = 0; i < items.size(); ++i) {
    const ExpectedLse tile = expected(i);
    const std::int64_t first = items[i].tile * kTile;
    for (std::int64_t row = 0; row < std::min(kTile, lse.tokens - first); ++row, ++rows) {
      LseError e =
          compare_lse_row(static_cast<double>(lse.head(items[i].head)[first + row]), tile.rows[row],
                          lse_bound(tile.score_magnitude, tile.rows[row], tile.keys));
      largest = std::max(largest, e.error);
      if (e.ratio <= 1) {
        verdict.worst_ratio = std::max(verdict.worst_ratio, e.ratio);
        continue;
      }
      e.head = items[i].head;
      e.row = first + row;
      beyond.push_back(e);
    }
  }
  allow_small_weights(beyond, small);
  const auto worst = std::ranges::max_element(beyond, {}, &LseError::ratio);
  if (worst == beyond.end()) return largest;
  verdict.worst_ratio = std::max(verdict.worst_ratio, worst->ratio);
  if (!(worst->ratio <= 1) && verdict.ok) {
    verdict.ok = false;
    verdict.reason = fmt::format(
        "lse is {:.7g} instead of {:.7g} at head {}, row {}: off by {:.3g}, bound {:.3g} "
        "({} of {} rows compared are wrong)",
        std::isnan(worst->found) ? std::abs(worst->found) : worst->found,  // drops a NaN's sign
        worst->expected, worst->head, worst->row, worst->error, worst->bound,
        std::ranges::count_if(beyond, [](const LseError& e) { return !(e.ratio <= 1); }), rows);
  }
  return largest;
}

std::optional<double> compare_sinks(const float* dsink, std::span<const SinkGradient> expected,
                                    Verdict& verdict) {
  if (expected.empty()) return std::nullopt;
  double squared = 0;
  double reference_squared = 0;
  std::int64_t wrong = 0;
  double worst_ratio = 0;
  const SinkGradient* worst = nullptr;
  for (const SinkGradient& sink : expected) {
    TileError error;
    error.largest = std::abs(static_cast<double>(dsink[sink.head]) - sink.value);
    error.squared = error.largest * error.largest;
    squared += error.squared;
    reference_squared += sink.value * sink.value;
    const double ratio = error_ratio(error, sink.bound);
    if (!(ratio <= 1)) ++wrong;
    if (worst != nullptr && !(ratio > worst_ratio)) continue;
    worst_ratio = ratio;
    worst = &sink;
  }
  verdict.worst_ratio = std::max(verdict.worst_ratio, worst_ratio);
  if (wrong > 0 && verdict.ok) {
    const double found = static_cast<double>(dsink[worst->head]);
    verdict.ok = false;
    verdict.reason = fmt::format(
        "dsink is {:.6g} instead of {:.6g} at head {}: off by {:.3g}, bound {:.3g} "
        "({} of {} heads compared are wrong)",
        std::isnan(found) ? std::abs(found) : found, worst->value, worst->head,
        std::abs(found - worst->value), worst->bound.norm, wrong, expected.size());
  }
  return std::sqrt(reference_squared > 0 ? squared / reference_squared : squared);
}

Verdict forward_verdict(const Verdict& of_lse, const Verdict& of_o) {
  Verdict both = of_lse.ok ? of_o : of_lse;
  both.error_lse = of_lse.error_lse;
  both.error_o = of_o.error_o;
  both.worst_ratio = std::max(of_lse.worst_ratio, of_o.worst_ratio);
  if (!of_lse.ok && of_o.ok) both.reason += "; LSE off alone, O is right";
  return both;
}

}  // namespace longca
