#pragma once

#include <cstdint>
#include <memory>

#include "attention/reference/verifier.h"

namespace longca {

/// The GPU reference: O, LSE, dQ, dK and dV by simple kernels without tensor cores, computed
/// lazily, once per problem, and shared by its kernels. Compares by the rules of `Reference`
/// (verifier.h, bounds.h). Not thread-safe.
///
/// A bfloat16 or float16 problem is computed with float32 sums, whose noise of 2⁻²⁴ · √terms is far
/// below their 2⁻⁸ and 2⁻¹¹; row sums are in float64, so that lse has the noise of one score. The
/// emulated honest kernel differs from the reference by roundings only, so the same pass
/// accumulates these differences: Σ (P̃ − P) V with P̃ the rounded P. A float32 problem is computed
/// in float64, and its emulation in float32.
///
/// Sampled rows and keys, recomputed in float64 on the host, check the reference itself
/// (self_check.h).
///
/// A budget that does not allow all elements draws KV heads or tiles of one (drawn_tiles.h). For
/// drawn tiles of keys the reference is computed from the (o, lse) that the backward pass was
/// given, as in `Reference`; without an lse, from its own forward pass of the whole head.
class CudaReference : public Verifier {
 public:
  /// Keeps a reference to `inputs`, which are in device memory. Throws InputError for head
  /// dimensions above 256 in bfloat16 and float16, 128 in float32.
  CudaReference(const Problem& problem, const Mask& mask, const Inputs& inputs, VerifyBudget budget,
                std::uint64_t seed);
  ~CudaReference() override;
  CudaReference(const CudaReference&) = delete;
  CudaReference& operator=(const CudaReference&) = delete;

  /// Both checks take tensors in device memory and throw InternalError if the reference itself
  /// disagrees with float64.
  Verdict check_forward(ConstTensorView o, const ConstLseView* lse) const override;
  Verdict check_backward(const BackwardArgs& args) const override;
  CheckedHeads checked_heads() const override;
  double fraction() const override;
  std::int64_t bytes() const override;
  static std::int64_t estimate_bytes(const Problem& problem, const Mask& mask, VerifyBudget budget);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longca
