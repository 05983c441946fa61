#include "attention/reference/verifier.h"

#include "attention/reference/verify.h"
#include "core/error.h"

namespace longca {

std::unique_ptr<Verifier> make_verifier(const Problem& problem, const Mask& mask,
                                        const Inputs& inputs, VerifyBudget budget,
                                        std::uint64_t seed) {
  LONGCA_CHECK(problem.device == DeviceKind::cpu, "no verifier for {}", to_string(problem.device));
  return std::make_unique<Reference>(problem, mask, inputs, budget, seed);
}

std::int64_t estimate_verifier_bytes(const Problem& problem, const Mask& mask,
                                     VerifyBudget budget) {
  return Reference::estimate_bytes(problem, mask, budget);
}

}  // namespace longca
