#pragma once

#include <string>

#include "mask/generators.h"
#include "parallel/schemes/scheme.h"

namespace longca::simulate::testing {

/// A pass over so many ranks with 64:8 heads of 128 in bfloat16, forward and backward.
inline ParallelProblem problem_over(int ranks, const std::string& mask,
                                    std::int64_t tokens_per_rank = 512,
                                    std::int64_t block = MaskSpec{}.block) {
  MaskSpec spec;
  spec.name = mask;
  spec.block = block;
  spec.tokens = tokens_per_rank * ranks;
  const GeneratedMask generated = generate_mask(spec);
  ParallelProblem problem{.problem = {}, .mask = generated.mask, .lengths = generated.lengths};
  problem.problem.tokens_q = problem.problem.tokens_k = spec.tokens;
  problem.problem.heads_q = 64;
  problem.problem.heads_k = 8;
  problem.problem.head_dim = 128;
  problem.problem.dtype = DType::bfloat16;
  problem.problem.device = DeviceKind::cuda;
  problem.problem.backward = true;
  problem.ranks = ranks;
  return problem;
}

}  // namespace longca::simulate::testing
