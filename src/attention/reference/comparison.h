#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "attention/reference/bounds.h"
#include "attention/reference/results.h"
#include "attention/reference/selection.h"
#include "attention/reference/verify.h"

namespace longca {

/// Checks that `x` is [tokens, heads, dim of the problem] of the problem's dtype or float32.
void check_shape(const char* name, const ConstTensorView& x, std::int64_t tokens, int heads,
                 const Problem& problem);

/// How the sentences call an output, its heads and its tokens.
struct OutputName {
  const char* name;
  const char* head;   ///< "head" or "KV head"
  const char* token;  ///< "row" or "key"
};

/// What a tile of an output should hold.
struct ExpectedTile {
  std::span<const double> values;  ///< [kTile, dim]
  std::uint64_t reached = 0;       ///< bit i: token i need not be exactly 0
  TileBound bound;
};
using ExpectedTiles = std::function<ExpectedTile(std::size_t)>;

/// Compares `x` with `expected(i)` at every items[i], on all threads, and adds what it finds to the
/// verdict: the sentence, if there is none yet, and the worst ratio. Returns the relative Frobenius
/// error (the absolute one if the reference is 0), nothing without items.
std::optional<double> compare_output(const OutputName& output, const ConstTensorView& x,
                                     const std::vector<Selection::Item>& items,
                                     const ExpectedTiles& expected, Verdict& verdict);

/// One tile's error and its bound.
struct JudgedTile {
  TileError error;
  TileBound bound;
};

/// The verdict on an output of `tokens` tokens whose errors at every items[i] are known:
/// compare_output without the comparison. `judged(i)` is asked for the worst tile only, for the
/// sentence.
std::optional<double> judge_output(const OutputName& output, std::int64_t tokens,
                                   const std::vector<Selection::Item>& items,
                                   std::span<const TileError> errors,
                                   const std::function<JudgedTile(std::size_t)>& judged,
                                   Verdict& verdict);

/// What the lse of a tile's rows should be.
struct ExpectedLse {
  std::span<const double> rows;  ///< [kTile]
  double score_magnitude = 0;    ///< as lse_bound takes it
  double keys = 0;               ///< likewise: mean over the rows
};

/// Compares lse, in host memory, with `expected(i)` at every items[i], row by row; returns the
/// largest absolute error, +∞ if one of the two is −∞ or not a number.
std::optional<double> compare_lse(const ConstLseView& lse,
                                  const std::vector<Selection::Item>& items,
                                  const std::function<ExpectedLse(std::size_t)>& expected,
                                  Verdict& verdict);

}  // namespace longca
