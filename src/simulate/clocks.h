#pragma once

#include "cost/kernel_cost.h"
#include "simulate/cluster.h"
#include "simulate/kernel_times.h"
#include "simulate/program.h"

namespace longca::simulate {

/// Lengthens the calls of a pass that is repeated without a pause, in turns with the same pass
/// without exchanges (as `cp` measures mode `sustained`): the clock of each rank settles where its
/// power limit is reached, which depends on how long its SMs compute and how long they wait. The
/// program is of ops at full clocks. The same arguments give the same bits.
void settle_clocks(Program& program, const Cluster& cluster, const KernelTimes& kernel,
                   cost::Pass pass);

}  // namespace longca::simulate
