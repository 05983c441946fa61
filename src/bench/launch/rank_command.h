#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/child_process.h"
#include "bench/launch/rank_machine.h"

namespace longca {

/// Who starts ranks.
enum class Launcher : std::uint8_t {
  mpirun,
  srun,
  found,  ///< nobody: they were started together with this process (MpiLaunch)
};

/// What ranks are started with, beside their number.
struct RankStart {
  Launcher launcher = Launcher::mpirun;
  std::string hostfile{};              ///< of mpirun; "": ranks on this host
  bool several_hosts = false;          ///< whether ranks may be on other hosts than this process
  std::vector<std::string> plugins{};  ///< files of kernels
  std::vector<std::string> python{};   ///< host_ranks: what hosts a rank; empty: longca-rank does
  std::string no_python{};             ///< why Python's kernels cannot run, if any is asked for
  std::string suite_hash{};            ///< equal on all ranks, or they refuse
};

/// A command with what it adds to the environment.
struct RankCommand {
  std::vector<std::string> command;
  ChildProcess::Environment environment;
};

/// What a rank is told where rank 0 tells it the parent's address.
inline constexpr const char* kAddressOfRank0 = "rank-0";

/// longca-rank, or the Python that hosts a rank, and its arguments. `address`: where the parent
/// listens, as the rank is to hear it.
std::vector<std::string> rank_arguments(const RankMachine& machine, const RankStart& start,
                                        const std::string& address);

/// The command that starts `ranks` ranks (with Launcher::found, rank 0 alone). On one host each
/// gets its share of the cores; more ranks than cores get one thread each, and yield while they
/// wait. Settings of the user's own environment are left as they are. `scratch`: a folder for the
/// launcher's own files.
RankCommand rank_command(const RankMachine& machine, const RankStart& start, int ranks,
                         const std::string& address, const std::string& scratch);

}  // namespace longca
