#include "attention/cpu/random_problem.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

namespace longca::test {
namespace {

std::int64_t integer(std::int64_t low, std::int64_t high, std::mt19937& random) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

std::int64_t tokens(std::mt19937& random) {
  constexpr std::int64_t kEdges[] = {0, 1, 2, 31, 32, 33, 63, 127, 128, 129, 256, 257};
  if (integer(0, 2, random) == 0) return kEdges[static_cast<std::size_t>(integer(0, 11, random))];
  return integer(1, 400, random);
}

/// Ascending from 0 to `end`, steps of 1 to `longest`.
std::vector<std::int64_t> bounds(std::int64_t end, std::int64_t longest, std::mt19937& random) {
  std::vector<std::int64_t> out{0};
  while (out.back() < end) out.push_back(std::min(end, out.back() + integer(1, longest, random)));
  return out;
}

/// Bands of queries, in each some disjoint ranges of keys.
std::vector<MaskSlice> random_slices(std::int64_t tokens_q, std::int64_t tokens_k,
                                     std::mt19937& random) {
  std::vector<MaskSlice> slices;
  const auto rows = bounds(tokens_q, 300, random);
  for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
    const auto keys = bounds(tokens_k, integer(1, 4, random) * 100, random);
    for (std::size_t j = 0; j + 1 < keys.size(); ++j) {
      if (integer(0, 3, random) == 0) continue;
      slices.push_back({rows[i], rows[i + 1], keys[j], keys[j + 1],
                        static_cast<MaskSliceType>(integer(0, 3, random))});
    }
  }
  return slices;
}

BlockLists random_blocks(std::int64_t tokens_q, std::int64_t tokens_k, int heads,
                         std::mt19937& random) {
  BlockLists blocks;
  const std::int64_t longest = integer(1, 150, random);
  blocks.q_bounds = bounds(tokens_q, longest, random);
  blocks.k_bounds = bounds(tokens_k, longest, random);
  blocks.heads = heads;
  blocks.offsets.push_back(0);
  for (std::int64_t list = 0; list < heads * blocks.q_blocks(); ++list) {
    for (std::int64_t k = 0; k < blocks.k_blocks(); ++k) {
      if (integer(0, 1, random) == 0) blocks.indices.push_back(static_cast<std::int32_t>(k));
    }
    blocks.offsets.push_back(static_cast<std::int64_t>(blocks.indices.size()));
  }
  return blocks;
}

}  // namespace

Mask random_mask(std::int64_t tokens_q, std::int64_t tokens_k, int heads_q, int heads_k,
                 std::mt19937& random) {
  const bool whole = integer(0, 2, random) == 0;
  const std::vector<MaskSlice> slices =
      whole ? std::vector<MaskSlice>{{0, tokens_q, 0, tokens_k,
                                      static_cast<MaskSliceType>(integer(0, 1, random))}}
            : random_slices(tokens_q, tokens_k, random);
  if (integer(0, 2, random) != 0) return Mask::from_slices(tokens_q, tokens_k, slices);
  const int heads = integer(0, 1, random) == 0 ? heads_k : heads_q;
  return Mask::from_blocks(tokens_q, tokens_k, slices,
                           random_blocks(tokens_q, tokens_k, heads, random));
}

Problem random_problem(DType dtype, std::mt19937& random) {
  constexpr int kDims[] = {1, 2, 7, 16, 33, 64, 80, 128, 128, 200, 256};
  Problem problem;
  problem.tokens_q = tokens(random);
  problem.tokens_k = integer(0, 1, random) == 0 ? problem.tokens_q : tokens(random);
  problem.heads_k = static_cast<int>(integer(1, 2, random));
  problem.heads_q = problem.heads_k * static_cast<int>(integer(1, 3, random));
  problem.head_dim = kDims[static_cast<std::size_t>(integer(0, 10, random))];
  problem.dtype = dtype;
  problem.backward = true;
  problem.sink = integer(0, 2, random) == 0;
  if (integer(0, 2, random) == 0)
    problem.softcap = std::ldexp(1.0F, static_cast<int>(integer(-2, 5, random)));
  constexpr int kPairs[][2] = {{24, 16}, {80, 33}, {96, 80}, {192, 128}, {17, 1}, {128, 31}};
  const auto pair = static_cast<std::size_t>(integer(0, 11, random));
  if (pair < std::size(kPairs)) {
    problem.head_dim = kPairs[pair][0];
    problem.head_dim_v = kPairs[pair][1];
  }
  return problem;
}

}  // namespace longca::test
