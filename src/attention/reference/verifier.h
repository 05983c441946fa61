#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/api/problem.h"
#include "attention/inputs/inputs.h"

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
  /// Of CPU time per problem, over all kernels and passes. A GPU gets a quarter of it as time of
  /// the device: whole_heads.h.
  double seconds = 10.0;
  /// Speed of the reference per CPU that the cost is estimated with; 0: measured, once per process.
  /// What is drawn depends on it, so that a fixed rate makes the choice repeatable anywhere.
  double gflops = 0;
};

/// Heads whose results a verifier reads: ranges, ascending, not touching.
struct CheckedHeads {
  std::vector<Range> q;  ///< of o, lse, dq
  std::vector<Range> k;  ///< of dk, dv
  bool operator==(const CheckedHeads&) const = default;
};

/// Judges what kernels computed for one problem. Made once per problem, reused by every kernel of
/// it. Tensors lie in the memory of the problem's device.
class Verifier {
 public:
  virtual ~Verifier() = default;

  /// `lse` null for a kernel that returns none.
  virtual Verdict check_forward(ConstTensorView o, const ConstLseView* lse) const = 0;
  /// `args` as the backward pass was called, args.lse.data null for a kernel that computes none;
  /// dout, q, k and v are those of the inputs. The same kernel's forward pass was checked before.
  virtual Verdict check_backward(const BackwardArgs& args) const = 0;
  /// Of a forward and a backward check; what lies in other heads does not matter to them.
  virtual CheckedHeads checked_heads() const = 0;
  /// Share of all output elements that a forward and a backward check compare.
  virtual double fraction() const = 0;
  /// Bytes that it keeps on the problem's device.
  virtual std::int64_t bytes() const = 0;
};

/// The verifier of the problem's device: `Reference` on the CPU, `CudaReference` on a GPU. Keeps a
/// reference to `inputs`; `seed` chooses what is drawn where the budget does not allow everything.
std::unique_ptr<Verifier> make_verifier(const Problem& problem, const Mask& mask,
                                        const Inputs& inputs, VerifyBudget budget,
                                        std::uint64_t seed);
/// An estimate of bytes() before it exists.
std::int64_t estimate_verifier_bytes(const Problem& problem, const Mask& mask, VerifyBudget budget);

}  // namespace longca
