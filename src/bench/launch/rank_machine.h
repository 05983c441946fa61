#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/status.h"

namespace longca {

/// What this machine has to start ranks with.
struct RankMachine {
  std::filesystem::path program;  ///< longca-rank beside this program; empty: a build without MPI
  std::filesystem::path mpirun;   ///< $LONGCA_MPIRUN, or mpirun on the PATH; empty if there is none
  int cores = 1;                  ///< that this process may use
  int gpus = 0;                   ///< that it sees
};

/// Found out once.
const RankMachine& rank_machine();

/// Whether this build has ranks at all, else what to install.
Support ranks_are_built();
/// Whether mpirun is here, else what to install.
Support mpirun_is_here();

/// The values of the axis `transport`.
std::vector<std::string> transport_names();
/// Whether a transport can be used on this machine, else why not.
Support transport_here(const std::string& name);

/// A program on the PATH, or the path itself if `name` has a slash; empty if there is none.
std::filesystem::path find_program(const std::string& name);

}  // namespace longca
