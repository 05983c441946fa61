#include <vector>

#include "attention/kernels/common/sink.h"
#include "core/cuda/rows.h"
#include "core/error.h"
#include "parallel/executor/cuda/step_math_kernels.h"
#include "parallel/executor/step_math.h"

namespace longca {
namespace {

constexpr std::uint32_t kMinusInfinity = 0xff800000;

cudaStream_t queue(Stream stream) {
  return static_cast<cudaStream_t>(stream);
}

void check_shapes(const ConstTensorView& from, const TensorView& to) {
  LONGCA_CHECK(from.tokens == to.tokens && from.heads == to.heads && from.dim == to.dim,
               "[{}, {}, {}] goes into [{}, {}, {}]", from.tokens, from.heads, from.dim, to.tokens,
               to.heads, to.dim);
}

void check_parts(std::size_t count) {
  LONGCA_CHECK(count >= 1 && count <= StepMath::kMaxParts, "{} partial results at once", count);
}

void check_dtype(DType dtype, DType expected) {
  LONGCA_CHECK(dtype == expected, "{} where {} is expected", to_string(dtype), to_string(expected));
}

void check_partial(const Partial& part, const TensorView& o, DType dtype) {
  check_shapes(part.o, o);
  check_dtype(part.o.dtype, dtype);
  LONGCA_CHECK(part.lse.tokens == o.tokens && part.lse.heads == o.heads,
               "lse of {} heads × {} tokens beside an o of {} × {}", part.lse.heads,
               part.lse.tokens, o.heads, o.tokens);
}

void check_rows(const SumOfRows& sum) {
  for (const RowsOfSum& part : sum.parts) {
    check_dtype(part.from.dtype, DType::float32);
    LONGCA_CHECK(part.from.heads == sum.to.heads && part.from.dim == sum.to.dim,
                 "rows of [{}, {}] go into rows of [{}, {}]", part.from.heads, part.from.dim,
                 sum.to.heads, sum.to.dim);
  }
}

class CudaStepMath : public StepMath {
 public:
  void clear(const TensorView& tensor, Stream stream) override {
    fill_rows(byte_rows(tensor), 0, queue(stream));
  }
  void clear(const LseView& lse, Stream stream) override {
    fill_rows(byte_rows(lse), kMinusInfinity, queue(stream));
  }
  void copy(const ConstTensorView& from, const TensorView& to, Stream stream) override {
    check_shapes(from, to);
    LONGCA_CHECK(from.dtype == to.dtype, "a copy from {} to {}", to_string(from.dtype),
                 to_string(to.dtype));
    copy_rows(byte_rows(from), byte_rows(to), queue(stream));
  }
  void copy(const ConstLseView& from, const LseView& to, Stream stream) override {
    LONGCA_CHECK(from.tokens == to.tokens && from.heads == to.heads,
                 "lse of {} × {} goes into {} × {}", from.heads, from.tokens, to.heads, to.tokens);
    const LseView source{const_cast<float*>(from.data), from.heads, from.tokens, from.head_stride};
    copy_rows(byte_rows(source), byte_rows(to), queue(stream));
  }
  void copy_all(std::span<const TensorCopy> copies, Stream stream) override {
    std::vector<RowsCopy> rows;
    for (const auto& [from, to] : copies) {
      check_shapes(from, to);
      check_dtype(to.dtype, from.dtype);
      rows.push_back({byte_rows(from), byte_rows(to)});
    }
    copy_rows_all(rows, queue(stream));
  }
  void add(const ConstTensorView& from, const TensorView& into, bool first,
           Stream stream) override {
    check_shapes(from, into);
    sum_all({&from, 1}, first ? ConstTensorView{} : into, into, stream);
  }
  void convert(const ConstTensorView& from, const TensorView& to, Stream stream) override {
    check_shapes(from, to);
    sum_tensors({&from, 1}, {}, to, queue(stream));
  }
  void merge(const Partial& part, const TensorView& o, const LseView& lse, bool first,
             Stream stream) override {
    merge_all({&part, 1}, first ? Partial{} : Partial{o, lse}, o, lse, stream);
  }
  void merge_all(std::span<const Partial> parts, const Partial& accumulator, const TensorView& o,
                 const LseView& lse, Stream stream) override {
    check_parts(parts.size());
    const DType dtype = parts.front().o.dtype;
    for (const Partial& part : parts) check_partial(part, o, dtype);
    if (accumulator.o.data != nullptr) check_partial(accumulator, o, DType::float32);
    if (o.dtype != DType::float32) check_dtype(o.dtype, dtype);
    merge_partials(parts, accumulator, o, lse, queue(stream));
  }
  void sum_all(std::span<const ConstTensorView> parts, const ConstTensorView& accumulator,
               const TensorView& to, Stream stream) override {
    check_parts(parts.size());
    for (const ConstTensorView& part : parts) {
      check_shapes(part, to);
      check_dtype(part.dtype, parts.front().dtype);
    }
    if (accumulator.data != nullptr) {
      check_shapes(accumulator, to);
      check_dtype(accumulator.dtype, DType::float32);
    }
    sum_tensors(parts, accumulator, to, queue(stream));
  }
  void total_all(std::span<const SumOfRows> sums, Stream stream) override {
    for (const SumOfRows& sum : sums) check_rows(sum);
    for (const SumOfRows* sum : total_tensors(sums, queue(stream))) total_segments(*sum, stream);
  }
  void join_sinks(const float* sink, const TensorView& o, const LseView& lse,
                  Stream stream) override {
    check_partial({o, lse}, o, o.dtype);
    join_sinks_to_rows(sink, o, lse, queue(stream));
  }
  void sink_gradients(const float* sink, float* dsink, const ConstTensorView& dout,
                      const ConstTensorView& o, const ConstLseView& lse, Stream stream) override {
    check_dtype(dout.dtype, o.dtype);
    LONGCA_CHECK(dout.tokens == o.tokens && dout.heads == o.heads && dout.dim == o.dim &&
                     lse.tokens == o.tokens && lse.heads == o.heads,
                 "dout [{}, {}, {}], o [{}, {}, {}] and lse [{}, {}]", dout.tokens, dout.heads,
                 dout.dim, o.tokens, o.heads, o.dim, lse.heads, lse.tokens);
    sum_sink_gradients(sink, dsink, false, o, dout, lse, queue(stream));
  }
};

}  // namespace

StepMath& cuda_step_math() {
  static CudaStepMath math;
  return math;
}

}  // namespace longca
