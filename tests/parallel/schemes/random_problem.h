#pragma once

#include <rapidcheck.h>

#include <string>
#include <vector>

#include "mask/generators.h"
#include "parallel/schemes/scheme.h"

namespace longca::testing {

inline constexpr ShardKind kShardKinds[] = {ShardKind::contiguous, ShardKind::zigzag,
                                            ShardKind::document_zigzag, ShardKind::balanced,
                                            ShardKind::document_balanced};

/// Of bfloat16, both passes. The mask and the documents are the caller's.
inline ParallelProblem problem_of(Mask mask, std::vector<std::int64_t> lengths, int heads_q,
                                  int heads_k, int ranks) {
  Problem problem;
  problem.tokens_q = problem.tokens_k = mask.q_tokens();
  problem.heads_q = heads_q;
  problem.heads_k = heads_k;
  problem.head_dim = 16;
  problem.dtype = DType::bfloat16;
  problem.backward = true;
  return {problem, std::move(mask), std::move(lengths), ranks, 8, ShardKind::contiguous, 0};
}

/// Any number of [first, last), each as often: inRange alone prefers small ones at first.
template <typename T>
T uniform(T first, T last) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(first, last));
}

/// One of the fourteen masks, or documents some of which have no token; small parameters, so that
/// masks do not turn into one another.
inline GeneratedMask random_mask(std::int64_t tokens, int heads_q, int heads_k) {
  const auto masks = mask_table();
  const int which = uniform(0, static_cast<int>(masks.size()) + 3);
  if (which < static_cast<int>(masks.size())) {
    MaskSpec spec;
    spec.name = masks[static_cast<std::size_t>(which)].name;
    spec.tokens = tokens;
    spec.seed = uniform<std::uint64_t>(0, 1000);
    spec.lengths = "pile";
    spec.window = uniform(1, 12);
    spec.block_tokens = uniform(1, 9);
    spec.block = uniform(1, 17);
    spec.density = 0.3;
    spec.heads_q = heads_q;
    spec.heads_k = heads_k;
    spec.block_heads = *rc::gen::element(std::string("kv"), std::string("query"));
    return generate_mask(spec);
  }
  std::vector<std::int64_t> lengths;
  std::vector<MaskSlice> slices;
  for (std::int64_t begin = 0; begin < tokens;) {
    const auto length = std::min(tokens - begin, uniform<std::int64_t>(0, 15));
    lengths.push_back(length);
    const bool causal = *rc::gen::arbitrary<bool>();
    slices.push_back({begin, begin + length, begin, begin + length,
                      causal ? MaskSliceType::causal : MaskSliceType::full});
    begin += length;
  }
  return {Mask::from_slices(tokens, tokens, std::move(slices)), lengths, {}, {}, {}};
}

/// Up to `most_tokens` tokens (also none) over 1 to 16 ranks, any sharding and heads.
inline ParallelProblem random_problem(std::int64_t most_tokens) {
  const int heads_k = uniform(1, 5);
  const int heads_q = heads_k * *rc::gen::element(1, 2, 4, 8);
  const auto tokens = uniform<std::int64_t>(0, most_tokens);
  GeneratedMask generated = random_mask(tokens, heads_q, heads_k);
  const int ranks = uniform(1, 17);
  ParallelProblem problem =
      problem_of(std::move(generated.mask), std::move(generated.lengths), heads_q, heads_k, ranks);
  problem.problem.backward = *rc::gen::weightedElement<bool>({{4, true}, {1, false}});
  problem.problem.sink = *rc::gen::arbitrary<bool>();
  problem.ranks_per_node = uniform(1, 9);
  problem.shard = *rc::gen::elementOf(std::vector(std::begin(kShardKinds), std::end(kShardKinds)));
  problem.factor = *rc::gen::weightedElement<int>({{3, 0}, {1, 1}, {1, 2}, {1, 3}, {1, 4}});
  problem.min_gap = *rc::gen::weightedElement<std::int64_t>({{1, 0}, {2, 1}, {1, 3}});
  return problem;
}

}  // namespace longca::testing
