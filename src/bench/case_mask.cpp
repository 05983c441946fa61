#include "bench/case_mask.h"

#include "attention/inputs/inputs.h"
#include "attention/selection/select_blocks.h"

namespace longca {

GeneratedMask case_mask(const Case& c) {
  if (!c.selects_by_scores()) return generate_mask(c.mask_spec());
  Problem problem = c.problem();
  // Values of a dtype that inputs do not have are not rounded before they are scored.
  if (problem.dtype != DType::bfloat16) problem.dtype = DType::float32;
  const Range tokens{0, c.tokens};
  const auto drawn = [&](InputTensor id, int heads) {
    Tensor tensor(Device::get(problem.device).memory(), problem.dtype, c.tokens, heads,
                  problem.head_dim);
    draw_rows(problem.device, tensor.view(), c.seed, id, {&tokens, 1}, c.input_style(),
              problem.heads_k);
    return tensor;
  };
  const Tensor q = drawn(InputTensor::q, problem.heads_q);
  const Tensor k = drawn(InputTensor::k, problem.heads_k);
  return selected_mask(c.mask_spec(), problem, q.view(), k.view());
}

}  // namespace longca
