#include "parallel/executor/random_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "attention/cpu/random_problem.h"

namespace longca::test {
namespace {

std::int64_t integer(std::int64_t low, std::int64_t high, std::mt19937& random) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

std::vector<std::int64_t> random_lengths(std::int64_t tokens, std::mt19937& random) {
  std::vector<std::int64_t> lengths;
  while (tokens > 0) {
    lengths.push_back(integer(1, std::min<std::int64_t>(tokens, 90), random));
    tokens -= lengths.back();
  }
  return lengths;
}

}  // namespace

ParallelProblem random_case(const Scheme& scheme, std::mt19937& random) {
  const std::int64_t tokens =
      integer(0, 4, random) == 0 ? integer(1, 20, random) : integer(20, 250, random);
  const bool wide = integer(0, 1, random) == 0;
  Problem problem;
  problem.tokens_q = problem.tokens_k = tokens;
  problem.heads_q = wide ? 8 : 4;
  problem.heads_k = wide ? 4 : 1;
  problem.head_dim = wide ? 16 : 24;
  problem.dtype = integer(0, 1, random) == 0 ? DType::float32 : DType::bfloat16;
  problem.softmax_scale = integer(0, 3, random) == 0 ? 0.3F : 0.0F;
  problem.backward = true;
  ParallelProblem out{.problem = problem,
                      .mask = random_mask(tokens, tokens, problem.heads_q, problem.heads_k, random),
                      .lengths = {}};
  if (integer(0, 3, random) != 0) out.lengths = random_lengths(tokens, random);
  out.ranks = static_cast<int>(integer(1, 8, random));
  out.ranks_per_node = static_cast<int>(integer(1, 8, random));
  out.shard = std::array{
      ShardKind::contiguous, ShardKind::zigzag, ShardKind::document_zigzag, ShardKind::balanced,
      ShardKind::document_balanced}[static_cast<std::size_t>(integer(0, 4, random))];
  if (scheme.has_factor()) out.factor = static_cast<int>(integer(0, out.ranks, random));
  out.min_gap = integer(0, 12, random);
  out.problem.sink = integer(0, 2, random) == 0;
  return out;
}

std::string describe(const ParallelProblem& p) {
  return fmt::format("{} tokens, {} ranks, {} per node, {}, factor {}, gap {}, heads {}:{}, {}{}{}",
                     p.problem.tokens_q, p.ranks, p.ranks_per_node, to_string(p.shard), p.factor,
                     p.min_gap, p.problem.heads_q, p.problem.heads_k, to_string(p.problem.dtype),
                     p.mask.blocks() ? ", blocks" : "", p.problem.sink ? ", sinks" : "");
}

}  // namespace longca::test
