#include "attention/slice/slice.h"

namespace longca {

Capabilities slice_capabilities() {
  Capabilities can;
  can.name = "slice";
  can.description =
      "any mask, by lists of key halves per query tile; wgmma on sm_90a, else mma.sync";
  can.origin = "here";
  can.device = DeviceKind::cuda;
  can.least_architecture = 80;
  can.dtypes = {DType::bfloat16};
  can.head_dims = {128};
#ifdef LONGCA_ALL_INSTANTIATIONS
  can.dtypes.push_back(DType::float16);
  can.head_dims.insert(can.head_dims.begin(), 64);
#endif
  can.deterministic = true;
  return can;
}

}  // namespace longca
