#include "attention/api/problem.h"

namespace longca {

double forward_flops(const Problem& problem, const Mask& mask) {
  return 4.0 * mask.mean_area() * problem.heads_q * problem.head_dim;
}

double backward_flops(const Problem& problem, const Mask& mask) {
  return 2.5 * forward_flops(problem, mask);
}

}  // namespace longca
