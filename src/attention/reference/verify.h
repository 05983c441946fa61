#pragma once

#include <cstdint>
#include <memory>

#include "attention/reference/verifier.h"

namespace longca {

/// The root of trust: attention in float64 from the inputs, by its own simple code. Computed once
/// per problem, when first needed, and reused by every kernel of it.
///
/// If the budget allows every element, all are compared. If not, whole KV heads with all their
/// query heads are drawn from the seed. If not even one is affordable, tiles of 64 tokens are:
/// tiles of queries for o, lse and dq, tiles of keys for dk and dv. A tile of keys needs the
/// softmax of every row that sees it, which is out of reach there, so it alone is computed from the
/// (o, lse) that the backward pass was given: the function that a backward pass is of its
/// arguments. At least one tile of each kind is compared, whatever it costs.
///
/// lse is held to an absolute bound per row. The others are judged per tile of 64 tokens of a head
/// against an emulation of an honest kernel of the problem's dtype: the error's norm may be twice
/// the emulation's, its largest element four times, plus a floor for what is rounding noise in any
/// arithmetic (bounds.h). What no key reaches must be exactly 0, its lse −∞. NaN is wrong.
///
/// Not thread-safe; it works on ThreadPool::global().
class Reference : public Verifier {
 public:
  /// Keeps a reference to `inputs`. `seed` chooses what is drawn.
  Reference(const Problem& problem, const Mask& mask, const Inputs& inputs, VerifyBudget budget,
            std::uint64_t seed);
  ~Reference() override;
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  Verdict check_forward(ConstTensorView o, const ConstLseView* lse) const override;
  /// Where tiles are drawn and args.lse.data is null, dk and dv are not compared.
  Verdict check_backward(const BackwardArgs& args) const override;
  CheckedHeads checked_heads() const override;
  double fraction() const override;
  std::int64_t bytes() const override;
  static std::int64_t estimate_bytes(const Problem& problem, const Mask& mask, VerifyBudget budget);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Fills an output with a pattern that no kernel computes (NaN), so that what is not written shows.
void poison(const TensorView& tensor);
void poison(const LseView& lse);

}  // namespace longca
