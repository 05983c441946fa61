#include <fmt/format.h>

#include <cstdint>

#include "attention/absent_kernel.h"
#include "attention/kernels/common/mma/instances.h"
#include "attention/kernels/slice/slice.h"

namespace longca {

Capabilities slice_capabilities() {
  Capabilities can;
  can.name = "slice";
  can.description =
      "any mask, by lists of key sub-tiles per query tile; wgmma on sm_90a, else mma.sync";
  can.origin = "here";
  can.device = DeviceKind::cuda;
  can.min_architecture = 80;
  mma::set_instances(can, mma::kSliceInstances);
  can.head_dims.insert(can.head_dims.end() - 1, kPaddedDims.begin(), kPaddedDims.end());
  if (mma::kWideInstances) {
    can.head_dims.push_back(kWideDim);
    can.dim_pairs = {kWidePair};
  }
  can.merges_earlier_dims = {80, 96, 128};
  can.adds_to_dq = true;
  can.deterministic = true;
  can.sinks = true;
  can.softcap = true;
  can.forward_tile = {.rows = 128, .keys = 64, .packed_heads = 8};
  can.backward_tile = {.rows = 64, .keys = 128, .packed_heads = 8};
  can.backward_bytes = {.per_q = 4, .per_row = 8};
  return can;
}

Support check_head_lists(const Problem& problem, const Mask& mask) {
  if (std::int64_t{problem.heads_q} * mask.heads() <= INT32_MAX) return {};
  return Support::unsupported(
      fmt::format("slice takes {} query heads with block lists of {} at most, not of {}",
                  problem.heads_q, INT32_MAX / problem.heads_q, mask.heads()));
}

#ifndef LONGCA_WITH_CUDA
std::unique_ptr<Kernel> make_slice() {
  return std::make_unique<AbsentKernel>(slice_capabilities());
}
#endif

}  // namespace longca
