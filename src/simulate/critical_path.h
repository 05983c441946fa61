#pragma once

#include <string>
#include <vector>

#include "simulate/engine.h"

namespace longca::simulate {

/// What the end of the pass waited for, from its start to its end, a sentence each: "rank 5 waits
/// 0.310 ms for 24 MiB of keys from rank 2 over the NIC". Stretches of computing of one rank are
/// one sentence.
std::vector<std::string> critical_path(const Program& program, const SimulatedPass& pass,
                                       const Cluster& cluster);

}  // namespace longca::simulate
