#include "attention/absent_kernel.h"
#include "attention/kernels/block_sparse_fa2/block_form.h"
#include "attention/kernels/block_sparse_fa2/fa2_sparse_native.h"
#include "attention/kernels/common/mma/instances.h"

namespace longca {

Capabilities fa2_sparse_native_capabilities() {
  Capabilities can;
  can.name = "fa2_sparse_native";
  can.description = "lists of kept blocks over FlashAttention-2 tiles";
  can.origin = "here";
  can.device = DeviceKind::cuda;
  can.min_architecture = 80;
  mma::set_instances(can);
  can.static_masks = false;
  can.accumulate = false;
  return can;
}

Support fa2_sparse_native_can_express(const Problem& problem, const Mask& mask) {
  static const Capabilities capabilities = fa2_sparse_native_capabilities();
  if (Support support = check_problem(capabilities, problem, mask); !support.ok()) return support;
  fa2_sparse::BlockForm form;
  return fa2_sparse::block_form(mask, form);
}

#ifndef LONGCA_WITH_CUDA
std::unique_ptr<Kernel> make_fa2_sparse_native() {
  return std::make_unique<AbsentKernel>(fa2_sparse_native_capabilities(), "",
                                        fa2_sparse_native_can_express);
}
#endif

}  // namespace longca
