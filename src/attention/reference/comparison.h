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

/// The same for lse, row by row; returns the largest absolute error, +∞ if one of the two is −∞ or
/// not a number.
std::optional<double> compare_lse(const ConstLseView& lse, const ReferenceResults& results,
                                  Verdict& verdict);

}  // namespace longca
