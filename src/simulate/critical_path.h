#pragma once

#include <string>
#include <vector>

#include "simulate/engine.h"

namespace longca::simulate {

struct CriticalPath {
  int first = 0;  ///< the rank whose pass begins with it
  std::vector<std::string> sentences;
};

/// What the end of rank `last`'s pass waited for, from where rank `first` begins its own to that
/// end, a sentence each: "rank 5 waits 0.310 ms for 24 MiB of keys from rank 2 over the NIC". Their
/// times add up to all of it. Stretches of computing of one rank are one sentence.
CriticalPath critical_path(const Program& program, const SimulatedPass& pass,
                           const Cluster& cluster, int last);

}  // namespace longca::simulate
