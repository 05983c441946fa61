#include "attention/kernels/common/mma/plan_tools.h"

#include <algorithm>

#include "core/cuda/error.h"
#include "core/error.h"

namespace longca::mma {
namespace {

Device& gpu() {
  return Device::get(DeviceKind::cuda);
}

template <typename View>
TensorArg argument(const char* kernel, const View& view) {
  const auto address = reinterpret_cast<std::uintptr_t>(view.data);
  LONGCA_CHECK(address % 16 == 0 && view.token_stride % 8 == 0 && view.head_stride % 8 == 0,
               "rows of {}'s tensors begin at multiples of 16 bytes, not at {:#x} with strides of "
               "{} and {} elements",
               kernel, address, view.token_stride, view.head_stride);
  return {const_cast<void*>(static_cast<const void*>(view.data)), view.token_stride,
          view.head_stride};
}

template <typename Args>
AttentionArgs args_of(const char* kernel, const Problem& problem, const Args& args) {
  AttentionArgs to;
  to.q = argument(kernel, args.q);
  to.k = argument(kernel, args.k);
  to.v = argument(kernel, args.v);
  to.o = argument(kernel, args.o);
  to.lse = const_cast<float*>(args.lse.data);
  to.lse_head_stride = args.lse.head_stride;
  to.tokens_q = static_cast<int>(problem.tokens_q);
  to.tokens_k = static_cast<int>(problem.tokens_k);
  to.heads_q = problem.heads_q;
  to.heads_k = problem.heads_k;
  to.scale = problem.scale();
  return to;
}

}  // namespace

int heads_in_cache(std::int64_t bytes_per_head, int heads) {
  const std::int64_t fit =
      gpu().properties().cache_bytes / 2 / std::max<std::int64_t>(1, bytes_per_head);
  return static_cast<int>(std::clamp<std::int64_t>(fit, 1, heads));
}

int device_shared_bytes() {
  int device = 0;
  int bytes = 0;
  LONGCA_CUDA(cudaGetDevice(&device));
  LONGCA_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return bytes;
}

AttentionArgs attention_args(const char* kernel, const Problem& problem, const ForwardArgs& args) {
  return args_of(kernel, problem, args);
}

AttentionArgs attention_args(const char* kernel, const Problem& problem, const BackwardArgs& args) {
  return args_of(kernel, problem, args);
}

GradientSums::GradientSums(const Problem& problem, int tile_m, int tile_n, int head_parts)
    : tile_n_(tile_n), head_parts_(head_parts) {
  const auto sums = [&](std::int64_t rows, int heads) {
    return take(rows * heads * problem.head_dim * 4);
  };
  const std::int64_t q_rows = padded(problem.tokens_q, tile_m);
  row_terms_ = take(q_rows * problem.heads_q * 2 * 4);
  dq_sum_ = sums(q_rows, problem.heads_q);
  if (head_parts > 1) {
    dk_sum_ = sums(padded(problem.tokens_k, tile_n), problem.heads_k);
    dv_sum_ = sums(padded(problem.tokens_k, tile_n), problem.heads_k);
  }
  scratch_ = PlanScratch(gpu().memory(), taken_);
}

std::int64_t GradientSums::take(std::int64_t bytes) {
  constexpr std::int64_t kAlignment = 256;
  const std::int64_t offset = taken_;
  taken_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return offset;
}

GradientArgs GradientSums::args(const char* kernel, const BackwardArgs& args) {
  std::byte* const scratch = scratch_.data();
  const auto at = [&](std::int64_t offset) {
    return offset < 0 ? nullptr : reinterpret_cast<float*>(scratch + offset);
  };
  GradientArgs to;
  to.dout = argument(kernel, args.dout);
  to.dq = argument(kernel, args.dq);
  to.dk = argument(kernel, args.dk);
  to.dv = argument(kernel, args.dv);
  to.row_terms = at(row_terms_);
  to.dq_sum = at(dq_sum_);
  to.dk_sum = at(dk_sum_);
  to.dv_sum = at(dv_sum_);
  to.tile_n = tile_n_;
  to.head_parts = head_parts_;
  return to;
}

}  // namespace longca::mma
