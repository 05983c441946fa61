#pragma once

#include <cstdint>

// The tensors of a call in the form of our own kernels' launches; pointers are device memory. Each
// kernel's parameters derive from these and add its lists and workspace.
namespace longca {

struct BackwardArgs;
struct EarlierResult;
struct ForwardArgs;
struct Problem;

/// A [tokens, heads, dim] tensor, of 16-bit elements unless said otherwise. Strides are in
/// elements; start and strides are multiples of 16 bytes.
struct TensorArg {
  void* data = nullptr;
  std::int64_t token_stride = 0;
  std::int64_t head_stride = 0;
  bool operator==(const TensorArg&) const = default;
};

/// The tensors and the shape that both passes take.
struct AttentionArgs {
  TensorArg q, k, v, o;
  float* lse = nullptr;  ///< [heads_q, tokens_q], natural logarithm
  std::int64_t lse_head_stride = 0;
  int tokens_q = 0, tokens_k = 0;
  int heads_q = 0, heads_k = 0;
  float scale = 1;
};

/// The tensors that a backward pass takes besides.
struct GradientTensors {
  TensorArg dout, dq, dk, dv;
};

/// An EarlierResult; absent if without data.
struct EarlierArg {
  TensorArg o;
  const float* lse = nullptr;
  std::int64_t lse_head_stride = 0;
};

/// The one conversion from the views of a call. Throws InputError, naming the kernel and the
/// tensor, unless rows begin at multiples of 16 bytes. A stride of an extent of 1 may be anything.
AttentionArgs attention_args(const char* kernel, const Problem& problem, const ForwardArgs& args);
AttentionArgs attention_args(const char* kernel, const Problem& problem, const BackwardArgs& args);
EarlierArg earlier_arg(const char* kernel, const EarlierResult& earlier);
GradientTensors gradient_tensors(const char* kernel, const BackwardArgs& args);

}  // namespace longca
