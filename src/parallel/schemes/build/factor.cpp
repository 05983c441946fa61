#include "parallel/schemes/build/factor.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "parallel/schemes/build/head_layout.h"

namespace longca {

int head_ways(const ParallelProblem& problem) {
  if (problem.factor != 0) return problem.factor;
  const int ways = std::gcd(problem.ranks, problem.problem.heads_k);
  const bool is_one_node = problem.ranks <= problem.ranks_per_node;
  return is_one_node ? ways : std::gcd(ways, std::max(problem.ranks_per_node, 1));
}

Support check_ranks(const ParallelProblem& problem) {
  if (problem.ranks < 1) {
    return Support::unsupported(fmt::format("{} ranks: at least 1", problem.ranks));
  }
  if (problem.problem.value_dim() == problem.problem.head_dim) return {};
  return Support::unsupported(fmt::format(
      "no scheme of context parallelism takes a v of another dimension than q and k, so "
      "not dim={}",
      to_string(dims_of(problem.problem))));
}

Support check_factor(const ParallelProblem& problem) {
  if (Support ranks = check_ranks(problem); !ranks.ok()) return ranks;
  const int ways = head_ways(problem);
  if (ways < 1 || problem.ranks % ways != 0) {
    return Support::unsupported(
        fmt::format("factor {} does not divide the {} ranks", ways, problem.ranks));
  }
  return check_heads(problem.problem.heads_q, problem.problem.heads_k, ways);
}

}  // namespace longca
