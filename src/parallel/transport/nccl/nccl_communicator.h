#pragma once

#include <memory>

#include "core/status.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// nccl_available() of parallel/transport/transports.h.
Support check_nccl();

/// Messages as ncclSend and ncclRecv, one NCCL group per exchange. A kernel on the exchange's
/// stream packs and unpacks strided messages through staging memory that all groups share. NCCL
/// errors carry rank, call and ncclGetLastError. Collective.
std::unique_ptr<Communicator> make_nccl_communicator(RankControl& control);

}  // namespace longca
