#pragma once

#include <memory>

#include "core/status.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// See parallel/transport/transports.h.
Support check_nccl();

/// Messages by NCCL's sends and receives, one NCCL group per exchange. A strided message is packed
/// and unpacked by a kernel on the exchange's stream, through staging memory that all groups share.
/// Errors of NCCL name the rank, the call and NCCL's own last words. Collective.
std::unique_ptr<Communicator> make_nccl_communicator(RankControl& control);

}  // namespace longca
