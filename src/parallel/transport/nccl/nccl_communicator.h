#pragma once

#include <memory>

#include "core/status.h"
#include "parallel/transport/communicator.h"
#include "parallel/transport/transports.h"

namespace longca {

/// nccl_available() of parallel/transport/transports.h.
Support check_nccl();

/// Messages as ncclSend and ncclRecv, one NCCL group per exchange. A kernel on the exchange's
/// stream packs and unpacks strided messages through staging memory that all groups share. NCCL
/// errors carry rank, call and ncclGetLastError. All communicators of the connections share one of
/// NCCL's, which runs their operations in the order of the calls. Collective.
std::unique_ptr<CudaConnections> make_nccl_connections(RankMessages& control);

}  // namespace longca
