#include "bench/cell_problem.h"

#include "bench/cell_tensors.h"

namespace longca {

CellProblem::CellProblem(const Case& c)
    : key(c.problem_key()), spec(c.mask_spec()), generated(generate_mask(spec)) {}

void CellProblem::make_inputs_and_reference(const Case& c, double budget_s,
                                            const StageListener& listener) {
  if (reference) return;
  Problem problem = c.problem();
  problem.backward = true;  // one reference serves both passes
  listener("inputs");
  inputs = make_inputs(problem, c.seed);
  inputs_fingerprint = fingerprint(inputs, Device::get(problem.device));
  listener("reference");
  reference = make_verifier(problem, generated.mask, inputs, VerifyBudget{budget_s}, c.seed);
}

}  // namespace longca
