#include "attention/reference/verifier.h"

#include "attention/reference/verify.h"
#include "core/error.h"
#ifdef LONGCA_WITH_CUDA
#include "attention/reference/cuda/cuda_reference.h"
#endif

namespace longca {

std::unique_ptr<Verifier> make_verifier(const Problem& problem, const Mask& mask,
                                        const Inputs& inputs, VerifyBudget budget,
                                        std::uint64_t seed) {
#ifdef LONGCA_WITH_CUDA
  if (problem.device == DeviceKind::cuda) {
    return std::make_unique<CudaReference>(problem, mask, inputs, budget, seed);
  }
#endif
  LONGCA_CHECK(problem.device == DeviceKind::cpu, "no verifier for {}", to_string(problem.device));
  return std::make_unique<Reference>(problem, mask, inputs, budget, seed);
}

std::int64_t estimate_verifier_bytes(const Problem& problem, const Mask& mask,
                                     VerifyBudget budget) {
#ifdef LONGCA_WITH_CUDA
  if (problem.device == DeviceKind::cuda) {
    return CudaReference::estimate_bytes(problem, mask, budget);
  }
#endif
  return Reference::estimate_bytes(problem, mask, budget);
}

}  // namespace longca
