#pragma once

#include <optional>
#include <string>

namespace longca {

/// The launch that this process is one of: `mpirun -n 4 longca cp`, `srun -n 8 longca cp`.
struct MpiLaunch {
  int rank = 0;
  int size = 1;
  int per_node = 1;  ///< processes on this one's node; `size` where that is not said
};

/// What Open MPI's mpirun, Slurm's srun or a PMI of MPICH left in the environment; nothing outside
/// of a launch or in one of a single process.
std::optional<MpiLaunch> find_mpi_launch();

/// Places for ranks that a hostfile gives.
struct HostSlots {
  int all = 0;
  int of_first_host = 0;
};

/// Reads a file in Open MPI's form ("node1 slots=8", one line per host; a host without slots counts
/// one per line). Throws InputError if it cannot be read or names no host.
HostSlots hostfile_slots(const std::string& path);

}  // namespace longca
