#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/api/problem.h"
#include "core/device.h"
#include "core/tensor.h"
#include "mask/mask_slice.h"

namespace longca {

/// A partial result, over some of the keys, in the problem's dtype or float32.
struct Partial {
  TensorView o;
  LseView lse;
};

/// Tensors of one shape and dtype.
struct TensorCopy {
  TensorView from;
  TensorView to;
};

/// A summand that covers some rows of a sum.
struct RowsOfSum {
  TensorView from;       ///< float32
  std::int64_t row = 0;  ///< its first row in the sum
};

/// `to` (any dtype) = the sum of any number of `parts`, each over its rows; other rows become 0.
struct SumOfRows {
  std::vector<RowsOfSum> parts;
  TensorView to;
};

/// Elementwise arithmetic between the steps of a plan, in float32. The tensors of a call have one
/// shape [tokens, heads, dim] and any strides. Queued on `stream`; on the CPU done on return.
class StepMath {
 public:
  virtual ~StepMath() = default;
  /// Sets tensors to 0, lse to −∞.
  virtual void clear(const TensorView& tensor, Stream stream) = 0;
  virtual void clear(const LseView& lse, Stream stream) = 0;
  virtual void copy(const ConstTensorView& from, const TensorView& to, Stream stream) = 0;
  virtual void copy(const ConstLseView& from, const LseView& to, Stream stream) = 0;
  /// Independent copies; on a GPU one launch where all are contiguous.
  virtual void copy_all(std::span<const TensorCopy> copies, Stream stream);
  /// into (float32) += from, or = from if `first`.
  virtual void add(const ConstTensorView& from, const TensorView& into, bool first,
                   Stream stream) = 0;
  /// Rounds float32 to the dtype of `to`, to nearest even.
  virtual void convert(const ConstTensorView& from, const TensorView& to, Stream stream) = 0;
  /// (o, lse) becomes the softmax over the keys of `part` and, unless `first`, over its former
  /// keys: lse' = log(e^lse + e^part.lse), o' = e^(lse−lse') o + e^(part.lse−lse') part.o; rows
  /// without a key in either stay 0, −∞. o is float32.
  virtual void merge(const Partial& part, const TensorView& o, const LseView& lse, bool first,
                     Stream stream) = 0;
  static constexpr std::size_t kMaxParts = 4;
  /// (o, lse) becomes the softmax over the keys of all `parts` (1 to kMaxParts, one dtype) and of
  /// `accumulator` (float32; absent if its data is null), in one pass on a GPU. o has any dtype. o
  /// and lse may alias the accumulator or a part; otherwise the accumulator is clobbered.
  virtual void merge_all(std::span<const Partial> parts, const Partial& accumulator,
                         const TensorView& o, const LseView& lse, Stream stream) = 0;
  /// to (any dtype) = the sum of all `parts` (1 to kMaxParts, one dtype) and of `accumulator`
  /// (float32; absent if its data is null), in one pass. `to` may alias the accumulator or a part.
  virtual void sum_all(std::span<const ConstTensorView> parts, const ConstTensorView& accumulator,
                       const TensorView& to, Stream stream) = 0;
  /// Independent sums; the parts may be clobbered. On a GPU one pass over those with contiguous
  /// tensors.
  virtual void total_all(std::span<const SumOfRows> sums, Stream stream);

  /// Adds the sinks `sink` [heads] to the softmax: lse' = log(e^lse + e^sink), o' = e^(lse−lse') o.
  /// o has any dtype; a row without keys has o = 0, and ends with lse = sink.
  virtual void join_sinks(const float* sink, const TensorView& o, const LseView& lse,
                          Stream stream) = 0;
  /// dsink[head] = −Σ over rows of exp(sink − lse) (dO · O), in a fixed order; dout and o have one
  /// dtype.
  virtual void sink_gradients(const float* sink, float* dsink, const ConstTensorView& dout,
                              const ConstTensorView& o, const ConstLseView& lse, Stream stream) = 0;

 protected:
  /// Computes one sum, segment by segment.
  void total_segments(const SumOfRows& sum, Stream stream);
};

/// The implementation for the device.
StepMath& step_math(DeviceKind device);
/// On all threads of ThreadPool::global(); float32 and bfloat16.
StepMath& cpu_step_math();
/// One pass over memory per call. Fast where rows, strides and addresses are multiples of 16 bytes
/// (8 for a 16-bit partial), correct for all others. Only in builds with CUDA.
StepMath& cuda_step_math();

/// Rows of a sum that the same parts cover.
struct SumSegment {
  Range rows;
  std::vector<std::size_t> parts;  ///< ascending; none: the rows become 0
};
/// Cuts the rows [0, tokens) of a sum where a part begins or ends. Parts must lie inside
/// (InternalError).
std::vector<SumSegment> sum_segments(std::span<const RowsOfSum> parts, std::int64_t tokens);

/// The rows `rows` of a tensor.
TensorView token_rows(TensorView tensor, Range rows);

}  // namespace longca
