#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "attention/api/problem.h"
#include "core/device.h"
#include "core/tensor.h"

namespace longca {

/// A result over some of the keys, of the problem's dtype or float32.
struct Partial {
  TensorView o;
  LseView lse;
};

/// Between tensors of one shape and dtype.
struct TensorCopy {
  TensorView from;
  TensorView to;
};

/// Some rows of a sum.
struct RowsOfSum {
  TensorView from;       ///< float32
  std::int64_t row = 0;  ///< where its first row belongs
};

/// `to` (any dtype) = the sum of `parts`, each over its rows, as many parts as there are; rows of
/// none become 0.
struct SumOfRows {
  std::vector<RowsOfSum> parts;
  TensorView to;
};

/// The arithmetic between the steps of a plan, elementwise, in float32. Tensors of one call have
/// one shape (tokens, heads, dim); strides are their own. Queued on `stream`; on the CPU done on
/// return.
class StepMath {
 public:
  virtual ~StepMath() = default;
  /// Zeros; −∞.
  virtual void clear(const TensorView& tensor, Stream stream) = 0;
  virtual void clear(const LseView& lse, Stream stream) = 0;
  virtual void copy(const ConstTensorView& from, const TensorView& to, Stream stream) = 0;
  virtual void copy(const ConstLseView& from, const LseView& to, Stream stream) = 0;
  /// None of which touches what another one writes; on a GPU in one pass where all lie
  /// contiguously.
  virtual void copy_all(std::span<const TensorCopy> copies, Stream stream);
  /// into (float32) += from, or = from if `first`.
  virtual void add(const ConstTensorView& from, const TensorView& into, bool first,
                   Stream stream) = 0;
  /// Rounds float32 to the dtype of `to`, to nearest even.
  virtual void convert(const ConstTensorView& from, const TensorView& to, Stream stream) = 0;
  /// (o, lse) becomes the softmax over the keys of `part` and, unless `first`, those it held:
  /// lse' = log(e^lse + e^part.lse), o' = e^(lse−lse') o + e^(part.lse−lse') part.o; rows that
  /// neither saw stay 0, −∞. o is float32.
  virtual void merge(const Partial& part, const TensorView& o, const LseView& lse, bool first,
                     Stream stream) = 0;
  static constexpr std::size_t kMaxParts = 4;
  /// (o, lse) becomes the softmax over the keys of all `parts` (1 to kMaxParts of one dtype) and
  /// of `accumulator` (float32; none if its data is null), in one pass on a GPU. o has any dtype;
  /// o and lse may be the accumulator's own, or a part's. Otherwise the accumulator's values are
  /// lost.
  virtual void merge_all(std::span<const Partial> parts, const Partial& accumulator,
                         const TensorView& o, const LseView& lse, Stream stream) = 0;
  /// to (any dtype) = the sum of all `parts` (1 to kMaxParts of one dtype) and of `accumulator`
  /// (float32; none if its data is null), in one pass. `to` may be the accumulator's own or a part.
  virtual void sum_all(std::span<const ConstTensorView> parts, const ConstTensorView& accumulator,
                       const TensorView& to, Stream stream) = 0;
  /// Such sums, none of which touches what another one reads or writes. The parts' values may be
  /// lost. One pass on a GPU over those whose tensors lie contiguously.
  virtual void total_all(std::span<const SumOfRows> sums, Stream stream);

 protected:
  /// One sum, segment by segment.
  void total_segments(const SumOfRows& sum, Stream stream);
};

/// Of the device; lives as long as the program.
StepMath& step_math(DeviceKind device);

}  // namespace longca
