#include "attention/adapters/fa2_sparse_native/block_form.h"
#include "attention/adapters/fa2_sparse_native/fa2_sparse_native.h"

namespace longca {

Capabilities fa2_sparse_native_capabilities() {
  Capabilities can;
  can.name = "fa2_sparse_native";
  can.description = "lists of kept blocks over FlashAttention-2 tiles";
  can.origin = "here";
  can.device = DeviceKind::cuda;
  can.least_architecture = 80;
  can.dtypes = {DType::bfloat16};
  can.head_dims = {128};
#ifdef LONGCA_ALL_INSTANTIATIONS
  can.dtypes.push_back(DType::float16);
  can.head_dims.insert(can.head_dims.begin(), 64);
#endif
  can.static_masks = false;
  can.accumulate = false;
  return can;
}

Support fa2_sparse_native_expresses(const Problem& problem, const Mask& mask) {
  static const Capabilities capabilities = fa2_sparse_native_capabilities();
  if (Support support = check_problem(capabilities, problem, mask); !support.ok()) return support;
  fa2_sparse::BlockForm form;
  return fa2_sparse::block_form(mask, form);
}

}  // namespace longca
