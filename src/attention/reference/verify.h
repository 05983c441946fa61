#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "attention/inputs.h"
#include "attention/kernel.h"
#include "attention/problem.h"

namespace longca {

/// What one comparison with the reference found.
struct Verdict {
  bool ok = true;
  std::string reason;     ///< if not ok: which output, head, rows, error and bound
  double fraction = 1.0;  ///< share of the output elements that were compared
  /// Relative Frobenius error over what was compared (‖x − ref‖ / ‖ref‖); for lse the largest
  /// absolute error. Absent where nothing of that output was compared.
  std::optional<double> error_o, error_lse, error_dq, error_dk, error_dv;
};

/// How much checking may cost.
struct VerifyBudget {
  double seconds = 10.0;  ///< of CPU time per problem, over all kernels and passes
};

/// The root of trust: attention in float64 from the inputs, by its own simple code. Computed once per
/// problem and reused by every kernel of it. If the budget allows every element, all are compared;
/// otherwise whole heads and row tiles (key tiles for dk, dv) are drawn from the seed.
class Reference {
 public:
  /// Keeps references to `inputs`. `seed` chooses what is drawn.
  Reference(const Problem& problem, const Mask& mask, const Inputs& inputs, VerifyBudget budget,
            std::uint64_t seed);
  ~Reference();
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  /// `lse` null for a kernel that returns none.
  Verdict check_forward(ConstTensorView o, const ConstLseView* lse) const;
  Verdict check_backward(ConstTensorView dq, ConstTensorView dk, ConstTensorView dv) const;
  /// Share of the output elements that a forward or backward check compares.
  double fraction() const;
  /// Bytes that the reference keeps, and an estimate before it exists.
  std::int64_t bytes() const;
  static std::int64_t estimate_bytes(const Problem& problem, const Mask& mask, VerifyBudget budget);


 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Fills an output with a pattern that no kernel computes (NaN), so that what is not written shows.
void poison(const TensorView& tensor);
void poison(const LseView& lse);

}  // namespace longca
