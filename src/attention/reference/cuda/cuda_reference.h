#pragma once

#include <cstdint>
#include <memory>

#include "attention/reference/verifier.h"

namespace longca {

/// The reference on a GPU: O, LSE, dQ, dK and dV of the problem by simple kernels without tensor
/// cores, computed once, when first needed, and reused by every kernel of the problem. It judges by
/// the rules of `Reference` (verify.h, bounds.h).
///
/// A bfloat16 problem is computed with float32 sums: their noise, 2⁻²⁴ · √terms, is far below the
/// errors of bfloat16, 2⁻⁸, that the bounds are about, and the sums of softmax weights are kept in
/// float64, which leaves lse the noise of one score. The emulation of an honest kernel differs from
/// it by roundings alone, so that the same pass sums those differences beside the result: Σ (P̃ − P)
/// V where P̃ is P in bfloat16. A float32 problem is computed in float64, and the emulation beside
/// it in float32.
///
/// Sampled rows and keys in float64 on the host hold the reference itself (self_check.h).
///
/// If the budget does not allow every element, KV heads with all their query heads are drawn from
/// the seed (whole_heads.h says what a budget buys), and where not even one is affordable, tiles of
/// one (drawn_tiles.h): tiles of keys are then judged as `Reference` judges them, from the (o, lse)
/// that the backward pass was given; without an lse, by the forward pass of the whole head. Not
/// thread-safe.
class CudaReference : public Verifier {
 public:
  /// Keeps a reference to `inputs`, in device memory. Throws InputError for head dimensions above
  /// 256 in bfloat16, 128 in float32.
  CudaReference(const Problem& problem, const Mask& mask, const Inputs& inputs, VerifyBudget budget,
                std::uint64_t seed);
  ~CudaReference() override;
  CudaReference(const CudaReference&) = delete;
  CudaReference& operator=(const CudaReference&) = delete;

  /// Tensors of both checks are in device memory. Throw InternalError if the reference itself
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
