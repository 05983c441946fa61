#include "attention/absent_kernel.h"
#include "attention/kernels/common/mma/instances.h"
#include "attention/kernels/flashmask/flashmask_native.h"
#include "mask/convert.h"

namespace longca {

Capabilities flashmask_native_capabilities() {
  Capabilities can;
  can.name = "flashmask_native";
  can.description = "FlashMask's column-wise mask intervals over FlashAttention-2 tiles";
  can.origin = "here";
  can.device = DeviceKind::cuda;
  can.min_architecture = 80;
  mma::set_instances(can);
  can.block_masks = false;
  can.accumulate = false;
  return can;
}

Support flashmask_native_can_express(const Problem& problem, const Mask& mask) {
  static const Capabilities capabilities = flashmask_native_capabilities();
  if (Support support = check_problem(capabilities, problem, mask); !support.ok()) return support;
  if (!column_intervals(mask, 0)) {
    return Support::unsupported(
        "flashmask_native describes each key column by at most two intervals of masked query rows, "
        "and a column of this mask has more");
  }
  return {};
}

#ifndef LONGCA_WITH_CUDA
std::unique_ptr<Kernel> make_flashmask_native() {
  return std::make_unique<AbsentKernel>(flashmask_native_capabilities(), "",
                                        flashmask_native_can_express);
}
#endif

}  // namespace longca
