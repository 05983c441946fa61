#include "attention/kernels/common/mma/plan_tools.h"

#include <algorithm>

#include "attention/kernels/common/workspace_parts.h"
#include "core/cuda/error.h"
#include "core/error.h"
#include "core/rounding.h"

namespace longca::mma {
namespace {

Device& gpu() {
  return Device::get(DeviceKind::cuda);
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

GradientSums::GradientSums(const Problem& problem, int tile_m, int tile_n, int head_parts)
    : tile_n_(tile_n), head_parts_(head_parts) {
  WorkspaceParts parts;
  const auto sums = [&](std::int64_t rows, int heads) {
    return parts.take(rows * heads * problem.head_dim * 4);
  };
  const std::int64_t q_rows = round_up(problem.tokens_q, tile_m);
  row_terms_ = parts.take(q_rows * problem.heads_q * 2 * 4);
  dq_sum_ = sums(q_rows, problem.heads_q);
  if (head_parts > 1) {
    dk_sum_ = sums(round_up(problem.tokens_k, tile_n), problem.heads_k);
    dv_sum_ = sums(round_up(problem.tokens_k, tile_n), problem.heads_k);
  }
  scratch_ = PlanScratch(gpu().memory(), parts.end);
}

GradientArgs GradientSums::args(const char* kernel, const BackwardArgs& args) {
  std::byte* const scratch = scratch_.data();
  const auto at = [&](std::int64_t offset) {
    return offset < 0 ? nullptr : reinterpret_cast<float*>(scratch + offset);
  };
  GradientArgs to{gradient_tensors(kernel, args)};
  to.row_terms = at(row_terms_);
  to.dq_sum = at(dq_sum_);
  to.dk_sum = at(dk_sum_);
  to.dv_sum = at(dv_sum_);
  to.tile_n = tile_n_;
  to.head_parts = head_parts_;
  return to;
}

}  // namespace longca::mma
