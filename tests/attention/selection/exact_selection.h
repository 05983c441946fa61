#pragma once

#include <string>

#include "attention/api/problem.h"
#include "core/tensor.h"
#include "mask/block_draw.h"

namespace longca::testing {

/// Holds a selection to float64: means and scores of all blocks from the tensors (in host memory),
/// by their definition. Every row must list the right number of visible blocks, ascending, and none
/// of them may score lower than one left out by more than `tolerance` · scale · |q| · |k|, |k| the
/// largest there is: what is closer is a tie. Empty if it is so, else a sentence about the first
/// row where it is not.
std::string fault_of_selection(const Problem& problem, const ConstTensorView& q,
                               const ConstTensorView& k, const BlockChoice& choice,
                               const BlockLists& lists, double tolerance);

}  // namespace longca::testing
