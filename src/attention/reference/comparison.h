#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "attention/reference/bounds.h"
#include "attention/reference/results.h"
#include "attention/reference/selection.h"
#include "attention/reference/verifier.h"

namespace longca {

/// Check that `x` is [tokens, heads, dim] of the problem's dtype or float32: dq as the queries, dk
/// as the keys with head_dim, o as the queries, dv as the keys with value_dim.
enum class OutputKind : std::uint8_t { o, dq, dk, dv };
void check_shape(OutputKind output, const ConstTensorView& x, const Problem& problem);

/// The names of an output, its heads and its tokens in a verdict's reason.
struct OutputName {
  const char* name;
  const char* head;   ///< "head" or "KV head"
  const char* token;  ///< "row" or "key"
};

/// The reference values of a tile of an output.
struct ExpectedTile {
  std::span<const double> values;  ///< [kTile, dim]
  std::uint64_t reached = 0;       ///< bit i: token i has an allowed cell, else it must be 0
  TileBound bound;
};
using ExpectedTiles = std::function<ExpectedTile(std::size_t)>;

/// Compares `x` with `expected(i)` at every items[i], multithreaded, and updates the verdict: its
/// worst ratio and, unless it has one, its reason. Returns the relative Frobenius error (the
/// absolute one if the reference is 0), nothing without items.
std::optional<double> compare_output(const OutputName& output, const ConstTensorView& x,
                                     const std::vector<Selection::Item>& items,
                                     const ExpectedTiles& expected, Verdict& verdict);

/// One tile's error and its bound.
struct JudgedTile {
  TileError error;
  TileBound bound;
};

/// compare_output from the known errors at every items[i] of an output of `tokens` tokens.
/// `judged(i)` is called for the worst tile only, to describe it.
std::optional<double> judge_output(const OutputName& output, std::int64_t tokens,
                                   const std::vector<Selection::Item>& items,
                                   std::span<const TileError> errors,
                                   const std::function<JudgedTile(std::size_t)>& judged,
                                   Verdict& verdict);

/// The reference lse of a tile's rows.
struct ExpectedLse {
  std::span<const double> rows;  ///< [kTile]
  double score_magnitude = 0;    ///< argument of lse_bound
  double keys = 0;               ///< argument of lse_bound: mean over the rows
};

/// share_of_small_weights of a row.
using ShareOfSmallWeights = std::function<double(std::int64_t head, std::int64_t row)>;

/// Compares lse, in host memory, with `expected(i)` at every items[i]; returns the largest absolute
/// error, +∞ for NaN or if only one of the two is −∞. Of a row beyond lse_bound, `small` is added
/// to the bound, if there are no more than kRecomputedRows of them: it is dear, and an order of
/// keys that brings rows so far off does so to few.
inline constexpr int kRecomputedRows = 64;
std::optional<double> compare_lse(const ConstLseView& lse,
                                  const std::vector<Selection::Item>& items,
                                  const std::function<ExpectedLse(std::size_t)>& expected,
                                  const ShareOfSmallWeights& small, Verdict& verdict);

/// Compares dsink [heads_q], in host memory; returns the relative error as compare_output.
std::optional<double> compare_sinks(const float* dsink, std::span<const SinkGradient> expected,
                                    Verdict& verdict);

/// The verdict on a forward pass from those on its lse and on its o. One whose o alone is right
/// says so: "…; LSE off alone, O is right".
Verdict forward_verdict(const Verdict& of_lse, const Verdict& of_o);

}  // namespace longca
