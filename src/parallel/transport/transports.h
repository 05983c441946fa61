#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/status.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// The names of the transports between GPUs: "nccl", and "peer" for GPUs of one host with peer
/// access. Listed in every build; without CUDA or NCCL they are `unavailable`.
std::span<const std::string> cuda_transport_names();
/// Throws InputError, with the nearest name, unless `transport` is one of them.
void check_cuda_transport(const std::string& transport);

/// Sets environment variables that these transports need, unless the user has set them:
/// CUDA_DEVICE_MAX_CONNECTIONS=32, so that a stream that waits for another rank does not block
/// other streams; NCCL_NVLS_ENABLE=0, because multicast objects can outlive a killed process. Must
/// precede the first CUDA call.
void set_transport_environment();

/// Ok if this process can load NCCL, else `unavailable` with what to install. Touches no GPU and
/// never throws.
Support nccl_available();

/// Ok if the ranks can use the transport: one GPU per rank and, for "peer", all on one host with
/// peer access. Collective: every rank gets the same answer, with the reason of the first rank that
/// refuses. Throws InputError for an unknown transport.
Support transport_available(const std::string& transport, RankMessages& control);

/// What takes long to connect, for communicators of the same ranks that come and go.
class CudaConnections {
 public:
  virtual ~CudaConnections() = default;
  /// Collective. The communicator may outlive this object; ending it is not collective, and comes
  /// after the GPUs of all ranks are done with what it started.
  virtual std::unique_ptr<Communicator> make_communicator() = 0;
};

/// Collective, as is ending the connections and the last of their communicators; `control` must
/// outlive them. Throws InputError if the transport is unavailable.
std::unique_ptr<CudaConnections> make_cuda_connections(const std::string& transport,
                                                       RankMessages& control);

/// A communicator with connections of its own. Collective, as is destroying it.
std::unique_ptr<Communicator> make_cuda_communicator(const std::string& transport,
                                                     RankMessages& control);

}  // namespace longca
