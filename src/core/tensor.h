#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/memory.h"

namespace longca {

/// A view of a [tokens, heads, dim] tensor. Strides count elements; the last dimension is
/// contiguous. Not owning; the device of the data is the Problem's.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::float32;
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t dim = 0;
  std::int64_t token_stride = 0;
  std::int64_t head_stride = 0;

  /// First element of one row. T must be the type that `dtype` names.
  template <typename T>
  T* row(std::int64_t token, std::int64_t head) const {
    return static_cast<T*>(data) + token * token_stride + head * head_stride;
  }
};

struct ConstTensorView {
  const void* data = nullptr;
  DType dtype = DType::float32;
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t dim = 0;
  std::int64_t token_stride = 0;
  std::int64_t head_stride = 0;

  ConstTensorView() = default;
  ConstTensorView(const TensorView& v)  // NOLINT(google-explicit-constructor): adds const only
      : data(v.data),
        dtype(v.dtype),
        tokens(v.tokens),
        heads(v.heads),
        dim(v.dim),
        token_stride(v.token_stride),
        head_stride(v.head_stride) {}

  template <typename T>
  const T* row(std::int64_t token, std::int64_t head) const {
    return static_cast<const T*>(data) + token * token_stride + head * head_stride;
  }
};

/// A view of the LSE [heads, tokens]: float32, natural logarithm, −∞ for a row without keys.
struct LseView {
  float* data = nullptr;
  std::int64_t heads = 0;
  std::int64_t tokens = 0;
  std::int64_t head_stride = 0;

  float* head(std::int64_t h) const { return data + h * head_stride; }
};

struct ConstLseView {
  const float* data = nullptr;
  std::int64_t heads = 0;
  std::int64_t tokens = 0;
  std::int64_t head_stride = 0;

  ConstLseView() = default;
  ConstLseView(const LseView& v)  // NOLINT(google-explicit-constructor): adds const only
      : data(v.data), heads(v.heads), tokens(v.tokens), head_stride(v.head_stride) {}

  const float* head(std::int64_t h) const { return data + h * head_stride; }
};

/// An owned, contiguous, uninitialised tensor [tokens, heads, dim] in a tracker's memory.
class Tensor {
 public:
  Tensor() = default;
  Tensor(MemoryTracker& memory, DType dtype, std::int64_t tokens, std::int64_t heads,
         std::int64_t dim)
      : buffer_(memory, tokens * heads * dim * size_of(dtype)),
        view_{buffer_.data(), dtype, tokens, heads, dim, heads * dim, dim} {}

  const TensorView& view() const { return view_; }
  std::int64_t bytes() const { return buffer_.bytes(); }

 private:
  Buffer buffer_;
  TensorView view_;
};

/// A Tensor in host memory.
class HostTensor : public Tensor {
 public:
  HostTensor() = default;
  HostTensor(DType dtype, std::int64_t tokens, std::int64_t heads, std::int64_t dim)
      : Tensor(MemoryTracker::host(), dtype, tokens, heads, dim) {}
};

/// An owned, contiguous, uninitialised array [heads, tokens] of float32 in a tracker's memory.
class Lse {
 public:
  Lse() = default;
  Lse(MemoryTracker& memory, std::int64_t heads, std::int64_t tokens)
      : buffer_(memory, heads * tokens * 4), view_{buffer_.as<float>(), heads, tokens, tokens} {}

  const LseView& view() const { return view_; }
  std::int64_t bytes() const { return buffer_.bytes(); }

 private:
  Buffer buffer_;
  LseView view_;
};

/// An Lse in host memory.
class HostLse : public Lse {
 public:
  HostLse() = default;
  HostLse(std::int64_t heads, std::int64_t tokens) : Lse(MemoryTracker::host(), heads, tokens) {}
};

}  // namespace longca
