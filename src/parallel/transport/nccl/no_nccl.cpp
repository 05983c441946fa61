// NCCL in a build without its header: unavailable.
#include "core/error.h"
#include "parallel/transport/nccl/nccl_communicator.h"

namespace longca {

Support check_nccl() {
  return Support::unavailable(
      "this build is without NCCL: install its header nccl.h (NVIDIA's package libnccl-dev) and "
      "build again");
}

std::unique_ptr<CudaConnections> make_nccl_connections(RankControl& /*control*/) {
  throw InputError(check_nccl().reason);
}

}  // namespace longca
