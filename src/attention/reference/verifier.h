#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/api/problem.h"
#include "attention/inputs/inputs.h"
#include "core/status.h"

namespace longca {

/// The result of one comparison with the reference.
struct Verdict {
  bool ok = true;
  std::string reason;     ///< if not ok: output, head, rows, error and bound
  double fraction = 1.0;  ///< share of the pass's output elements that were compared
  /// Relative Frobenius error ‖x − ref‖ / ‖ref‖ of the compared elements; of lse the largest
  /// absolute error. Absent if nothing of the output was compared.
  std::optional<double> error_o, error_lse, error_dq, error_dk, error_dv, error_dsink;
  /// max error / bound over all compared tiles and rows; above 1 is wrong.
  double worst_ratio = 0;
};

/// The time that verification may take.
struct VerifyBudget {
  /// CPU time per problem for all kernels and passes. A GPU gets a quarter of it as device time,
  /// see drawn_tiles.h.
  double seconds = 10.0;
  /// The reference's assumed GFLOP/s per CPU; 0 measures it once per process. The drawn tiles
  /// depend on it, so a fixed rate makes them reproducible on any machine.
  double gflops = 0;
};

/// The heads whose results a verifier reads: ascending, non-adjacent ranges.
struct CheckedHeads {
  std::vector<Range> q;  ///< of o, lse, dq
  std::vector<Range> k;  ///< of dk, dv
  bool operator==(const CheckedHeads&) const = default;
};

/// Checks kernels' results for one problem; created once per problem and shared by its kernels.
/// Tensors are in the memory of the problem's device.
class Verifier {
 public:
  virtual ~Verifier() = default;

  /// `lse` is null for a kernel that returns none.
  virtual Verdict check_forward(ConstTensorView o, const ConstLseView* lse) const = 0;
  /// Why gradients of a kernel that returns no lse cannot be checked; "" if they can.
  virtual std::string why_gradients_need_lse() const { return {}; }
  /// `args` are the backward call's, with args.lse.data null for a kernel without lse, which
  /// why_gradients_need_lse() must allow; dout, q, k and v must be the inputs. The same kernel's
  /// forward pass must have been checked before.
  virtual Verdict check_backward(const BackwardArgs& args) const = 0;
  /// The heads that a forward and a backward check read.
  virtual CheckedHeads checked_heads() const = 0;
  /// Share of all output elements that a forward and a backward check compare together.
  virtual double fraction() const = 0;
  /// Bytes held on the problem's device.
  virtual std::int64_t bytes() const = 0;
};

/// The verifier for the problem's device: `Reference` on the CPU, `CudaReference` on a GPU. Keeps a
/// reference to `inputs`; `seed` chooses the tiles if the budget does not allow all.
std::unique_ptr<Verifier> make_verifier(const Problem& problem, const Mask& mask,
                                        const Inputs& inputs, VerifyBudget budget,
                                        std::uint64_t seed);
/// An estimate of Verifier::bytes() without creating one.
std::int64_t estimate_verifier_bytes(const Problem& problem, const Mask& mask, VerifyBudget budget);

/// The root of trust on the CPU: attention in float64 from the inputs, by simple code of its own.
/// Computed lazily, once per problem, and shared by its kernels.
///
/// All elements are compared if the budget allows; else KV heads with all their query heads, drawn
/// from the seed; and if not even one is affordable, tiles of 64 tokens: of queries for o, lse and
/// dq, of keys for dk and dv. A tile of keys needs the softmax of every row that attends to it, too
/// much to compute there, so its reference is computed from the (o, lse) that the backward pass was
/// given; gradients of a kernel without lse are then refused. At least one tile of each kind is
/// compared, whatever the budget.
///
/// dsink of a query head is a sum over its rows, computed from the reference's or the given (o,
/// lse) as dk and dv are.
///
/// lse has an absolute bound per row. The other outputs are bounded per tile of 64 tokens of a head
/// by the error of an emulated honest kernel of the problem's dtype: twice its norm and four times
/// its largest element, plus a floor for unavoidable rounding noise (bounds.h). A row or key
/// without an allowed cell must be exactly 0, its lse −∞, or the sink. dsink has the bound of a
/// tile of one element. NaN is wrong.
///
/// Not thread-safe; computes on ThreadPool::global().
class Reference : public Verifier {
 public:
  /// Keeps a reference to `inputs`; `seed` chooses the heads or tiles.
  Reference(const Problem& problem, const Mask& mask, const Inputs& inputs, VerifyBudget budget,
            std::uint64_t seed);
  ~Reference() override;
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  Verdict check_forward(ConstTensorView o, const ConstLseView* lse) const override;
  std::string why_gradients_need_lse() const override;
  Verdict check_backward(const BackwardArgs& args) const override;
  CheckedHeads checked_heads() const override;
  double fraction() const override;
  std::int64_t bytes() const override;
  static std::int64_t estimate_bytes(const Problem& problem, const Mask& mask, VerifyBudget budget);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Fills an output with NaN, so that unwritten elements are detected.
void poison(const TensorView& tensor);
void poison(const LseView& lse);

}  // namespace longca
