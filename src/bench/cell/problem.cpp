#include "bench/cell/problem.h"

#include "attention/inputs/inputs.h"
#include "attention/selection/select_blocks.h"
#include "bench/cell/tensors.h"
#include "mask/mask.h"
#ifdef LONGCA_WITH_CUDA
#include "attention/kernels/common/block_map.h"
#endif

namespace longca {

GeneratedMask case_mask(const Case& c) {
  if (!c.selects_by_scores()) return generate_mask(c.mask_spec());
  Problem problem = c.problem();
  // Inputs are bfloat16 or float32: for another dtype, unrounded values are scored.
  if (problem.dtype != DType::bfloat16) problem.dtype = DType::float32;
  const Range tokens{0, c.tokens};
  const auto drawn = [&](InputTensor id, int heads) {
    Tensor tensor(Device::get(problem.device).memory(), problem.dtype, c.tokens, heads,
                  problem.head_dim);
    draw_rows(problem.device, tensor.view(), c.seed, id, {&tokens, 1},
              input_law(problem, c.input_style(), {}));  // block masks have no documents
    return tensor;
  };
  const Tensor q = drawn(InputTensor::q, problem.heads_q);
  const Tensor k = drawn(InputTensor::k, problem.heads_k);
  return selected_mask(c.mask_spec(), problem, q.view(), k.view());
}

CellProblem::CellProblem(const Case& c)
    : key(c.problem_key()), spec(c.mask_spec()), generated(case_mask(c)) {
  const Mask& mask = generated.mask;
  if (mask.blocks() == nullptr) return;
  rows_without_keys = longca::rows_without_keys(mask);
#ifdef LONGCA_WITH_CUDA
  // Over ranks, plans are of parts of the mask, which have block maps of their own.
  if (c.problem().device == DeviceKind::cuda && !c.scheme) BlockMap::of(mask);
#endif
}

void CellProblem::make_inputs_and_reference(const Case& c, double budget_s,
                                            const StageListener& listener) {
  if (reference) return;
  Problem problem = c.problem();
  problem.backward = true;  // one reference serves both passes
  listener("inputs");
  inputs = make_inputs(problem, c.seed, c.input_style(), generated.lengths);
  inputs_fingerprint = fingerprint(inputs, Device::get(problem.device));
  listener("reference");
  reference = make_verifier(problem, generated.mask, inputs, VerifyBudget{budget_s}, c.seed);
}

}  // namespace longca
