#include "attention/kernels/common/attention_args.h"

#include "attention/api/kernel.h"
#include "core/error.h"

namespace longca {
namespace {

TensorArg tensor_arg(const char* kernel, const char* name, const ConstTensorView& view) {
  const auto address = reinterpret_cast<std::uintptr_t>(view.data);
  const bool is_aligned = address % 16 == 0 && (view.tokens <= 1 || view.token_stride % 8 == 0) &&
                          (view.heads <= 1 || view.head_stride % 8 == 0);
  if (!is_aligned) {
    throw_input_error(
        "rows of {}'s {} begin at multiples of 16 bytes, not at {:#x} with strides of {} and {} "
        "elements: copy it",
        kernel, name, address, view.token_stride, view.head_stride);
  }
  return {const_cast<void*>(view.data), view.token_stride, view.head_stride};
}

template <typename Args>
AttentionArgs args_of(const char* kernel, const Problem& problem, const Args& args) {
  return {.q = tensor_arg(kernel, "q", args.q),
          .k = tensor_arg(kernel, "k", args.k),
          .v = tensor_arg(kernel, "v", args.v),
          .o = tensor_arg(kernel, "o", args.o),
          .lse = const_cast<float*>(args.lse.data),
          .lse_head_stride = args.lse.head_stride,
          .tokens_q = static_cast<int>(problem.tokens_q),
          .tokens_k = static_cast<int>(problem.tokens_k),
          .heads_q = problem.heads_q,
          .heads_k = problem.heads_k,
          .scale = problem.scale()};
}

}  // namespace

AttentionArgs attention_args(const char* kernel, const Problem& problem, const ForwardArgs& args) {
  return args_of(kernel, problem, args);
}

AttentionArgs attention_args(const char* kernel, const Problem& problem, const BackwardArgs& args) {
  return args_of(kernel, problem, args);
}

EarlierArg earlier_arg(const char* kernel, const EarlierResult& earlier) {
  if (earlier.o.data == nullptr) return {};
  return {tensor_arg(kernel, "earlier o", earlier.o), earlier.lse.data, earlier.lse.head_stride};
}

GradientTensors gradient_tensors(const char* kernel, const BackwardArgs& args) {
  return {.dout = tensor_arg(kernel, "dout", args.dout),
          .dq = tensor_arg(kernel, "dq", args.dq),
          .dk = tensor_arg(kernel, "dk", args.dk),
          .dv = tensor_arg(kernel, "dv", args.dv)};
}

}  // namespace longca
