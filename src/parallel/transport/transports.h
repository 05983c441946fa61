#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/status.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// The transports between GPUs: "nccl"; "peer", for GPUs of one host that reach each other's
/// memory. The same in a build without CUDA or NCCL, where they are `unavailable`.
std::span<const std::string> cuda_transport_names();
/// Throws InputError that suggests the nearest if it is none of them.
void check_cuda_transport(const std::string& transport);

/// Settings of the process that these transports need, made before anything uses the GPU and only
/// where the environment has none: CUDA_DEVICE_MAX_CONNECTIONS=32, so that a stream that waits for
/// another rank does not hold up others; NCCL_NVLS_ENABLE=0, as multicast objects can outlive a
/// process that is killed.
void set_transport_environment();

/// Whether this process can load NCCL; else what to install. Touches no GPU. Never throws.
Support nccl_available();

/// Whether the ranks can use a transport: each has a GPU of its own and, for peer, all are of one
/// host and reach each other's memory. Collective: the same answer on every rank, with the sentence
/// of the first rank that refuses. Throws InputError for a name that is no GPU transport.
Support transport_available(const std::string& transport, RankControl& control);

/// Collective; the transport is available, and `control` outlives the communicator. All ranks
/// destroy it at the same point. Throws InputError if it is not available.
std::unique_ptr<Communicator> make_cuda_communicator(const std::string& transport,
                                                     RankControl& control);

}  // namespace longca
