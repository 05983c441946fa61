#pragma once

#include <cstdint>
#include <random>

#include "attention/api/problem.h"
#include "mask/mask.h"

namespace longca::test {

/// A random mask over up to a few tiles of queries and keys: slices of all types, rows and keys
/// that nobody sees, in a third of the cases block lists per head on top.
Mask random_mask(std::int64_t tokens_q, std::int64_t tokens_k, int heads_q, int heads_k,
                 std::mt19937& random);

/// A random shape: with or without sinks and a softcap of 1/4 to 32; GQA ratios, head dimensions,
/// in half of the cases a smaller one of v, tokens_q ≠ tokens_k, 0 and 1 and odd lengths.
Problem random_problem(DType dtype, std::mt19937& random);

}  // namespace longca::test
