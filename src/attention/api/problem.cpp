#include "attention/api/problem.h"

#include <fmt/format.h>

#include "cost/kernel_cost.h"

namespace longca {

std::string to_string(const DimPair& dims) {
  return dims.head_dim == dims.value_dim ? std::to_string(dims.head_dim)
                                         : fmt::format("{}:{}", dims.head_dim, dims.value_dim);
}

DimPair dims_of(const Problem& problem) {
  return {problem.head_dim, problem.value_dim()};
}

double forward_flops_per_cell(const Problem& problem) {
  return cost::flops_per_cell(problem.head_dim, problem.value_dim(), cost::Pass::forward);
}

double backward_flops_per_cell(const Problem& problem) {
  return cost::flops_per_cell(problem.head_dim, problem.value_dim(), cost::Pass::backward);
}

double forward_flops(const Problem& problem, const Mask& mask) {
  return forward_flops_per_cell(problem) * mask.mean_area() * problem.heads_q;
}

double backward_flops(const Problem& problem, const Mask& mask) {
  return backward_flops_per_cell(problem) * mask.mean_area() * problem.heads_q;
}

}  // namespace longca
