#include "attention/kernels/common/mma/instances.h"
#include "attention/kernels/slice/slice.h"

namespace longca {

Capabilities slice_capabilities() {
  Capabilities can;
  can.name = "slice";
  can.description =
      "any mask, by lists of key sub_tiles per query tile; wgmma on sm_90a, else mma.sync";
  can.origin = "here";
  can.device = DeviceKind::cuda;
  can.min_architecture = 80;
  mma::set_instances(can);
  can.deterministic = true;
  return can;
}

}  // namespace longca
