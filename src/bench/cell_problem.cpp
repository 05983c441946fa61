#include "bench/cell_problem.h"

#include "bench/case_mask.h"
#include "bench/cell_tensors.h"
#include "mask/mask.h"
#ifdef LONGCA_WITH_CUDA
#include "attention/kernels/common/block_map.h"
#endif

namespace longca {

CellProblem::CellProblem(const Case& c)
    : key(c.problem_key()), spec(c.mask_spec()), generated(case_mask(c)) {
  const Mask& mask = generated.mask;
  if (mask.blocks() == nullptr) return;
  rows_without_keys = longca::rows_without_keys(mask);
#ifdef LONGCA_WITH_CUDA
  // Ranks plan for parts of the mask.
  if (c.problem().device == DeviceKind::cuda && !c.scheme) BlockMap::of(mask);
#endif
}

void CellProblem::make_inputs_and_reference(const Case& c, double budget_s,
                                            const StageListener& listener) {
  if (reference) return;
  Problem problem = c.problem();
  problem.backward = true;  // one reference serves both passes
  listener("inputs");
  inputs = make_inputs(problem, c.seed, c.input_style());
  inputs_fingerprint = fingerprint(inputs, Device::get(problem.device));
  listener("reference");
  reference = make_verifier(problem, generated.mask, inputs, VerifyBudget{budget_s}, c.seed);
}

}  // namespace longca
