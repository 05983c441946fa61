#pragma once

#include <string>

#include "parallel/transport/communicator.h"

namespace longca {

/// This rank's share of its host, as settings of the process: LONGCA_THREADS, its cores over the
/// ranks that may use the same ones, at least 1; LONGCA_DEVICE, a GPU for each rank of the host in
/// turn. What the environment says already stays. Before threads and devices are used. Collective.
void take_share_of_host(RankControl& control, int local_rank);

/// As the system calls it.
std::string host_name();

/// Has the system end this process when the one that started it dies. False if that is dead
/// already.
bool die_with_parent();

}  // namespace longca
