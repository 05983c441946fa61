#pragma once

#include <filesystem>
#include <optional>
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

/// Determined once per process.
const RankMachine& rank_machine();

/// Ok if this build has longca-rank, else what to install.
Support ranks_are_built();
/// Ok if mpirun was found, else what to install.
Support mpirun_is_here();
/// Ok if srun is on the PATH.
Support srun_is_here();

/// Ok if a transport can be used on this machine, else why not.
Support transport_here(const std::string& name);

/// The launch that this process is one of: `mpirun -n 4 longca cp`, `srun -n 8 longca cp`.
struct MpiLaunch {
  int rank = 0;
  int size = 1;
  int per_node = 1;  ///< processes on this one's node; `size` if unknown
};

/// Finds the launch in the variables of Open MPI's mpirun, Slurm's srun or MPICH's PMI; nothing
/// outside of a launch or in one of a single process.
std::optional<MpiLaunch> find_mpi_launch();

/// The ranks of a node that LONGCA_RANKS_PER_NODE has schemes see, in place of those of a host, to
/// make plans of several nodes on one; at least 1. Throws InputError for what is no such number.
std::optional<int> asked_ranks_per_node();
/// The same of a text, as another rank has it; nothing if it is empty.
std::optional<int> asked_ranks_per_node(const std::string& text);

/// How many ranks a hostfile has slots for.
struct HostSlots {
  int all = 0;
  int of_first_host = 0;
};

/// Reads a file in Open MPI's form ("node1 slots=8", one line per host; a host without slots counts
/// one per line). Throws InputError if it cannot be read or names no host.
HostSlots hostfile_slots(const std::string& path);
/// The names of its hosts, each once. Throws InputError if it cannot be read.
std::vector<std::string> hostfile_hosts(const std::string& path);

}  // namespace longca
