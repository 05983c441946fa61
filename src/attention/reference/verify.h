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
  double fraction = 1.0;  ///< share of the pass's output elements that were compared
  /// Relative Frobenius error over what was compared (‖x − ref‖ / ‖ref‖); for lse the largest
  /// absolute error. Absent where nothing of that output was compared.
  std::optional<double> error_o, error_lse, error_dq, error_dk, error_dv;
  /// The largest error as a share of its bound, over all that was compared: above 1 is wrong.
  double worst_ratio = 0;
};

/// How much checking may cost.
struct VerifyBudget {
  double seconds = 10.0;  ///< of CPU time per problem, over all kernels and passes
  /// Speed of the reference per CPU that the cost is reckoned with; 0: measured, once per process.
  /// What is drawn depends on it, so that a fixed rate makes the choice repeatable anywhere.
  double gflops = 0;
};

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
class Reference {
 public:
  /// Keeps a reference to `inputs`. `seed` chooses what is drawn.
  Reference(const Problem& problem, const Mask& mask, const Inputs& inputs, VerifyBudget budget,
            std::uint64_t seed);
  ~Reference();
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  /// `lse` null for a kernel that returns none.
  Verdict check_forward(ConstTensorView o, const ConstLseView* lse) const;
  /// `args` as the backward pass was called; dout, q, k and v are those of the inputs. Where tiles
  /// are drawn and args.lse.data is null, dk and dv are not compared.
  Verdict check_backward(const BackwardArgs& args) const;
  /// Share of all output elements that a forward and a backward check compare.
  double fraction() const;
  /// Bytes that the reference keeps, from its construction on, and an estimate before it exists.
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
