// Transports between GPUs in a build without CUDA: all unavailable.
#include "core/error.h"
#include "parallel/transport/transports.h"

namespace longca {

void set_transport_environment() {}

Support nccl_available() {
  return Device::available(DeviceKind::cuda);
}

Support transport_available(const std::string& transport, RankMessages& /*control*/) {
  check_cuda_transport(transport);
  return Device::available(DeviceKind::cuda);
}

std::unique_ptr<CudaConnections> make_cuda_connections(const std::string& transport,
                                                       RankMessages& control) {
  throw InputError(transport_available(transport, control).reason);
}

std::unique_ptr<Communicator> make_cuda_communicator(const std::string& transport,
                                                     RankMessages& control) {
  throw InputError(transport_available(transport, control).reason);
}

}  // namespace longca
