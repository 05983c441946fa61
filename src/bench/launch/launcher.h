#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/launch/rank_machine.h"
#include "core/process.h"

namespace longca {

/// Who starts ranks.
enum class Launcher : std::uint8_t {
  mpirun,
  srun,
  found,  ///< already started, together with this process (MpiLaunch)
};

/// How ranks are started, beside their number.
struct RankStart {
  Launcher launcher = Launcher::mpirun;
  std::string hostfile{};              ///< mpirun's; "": ranks on this host
  bool several_hosts = false;          ///< whether ranks may run on other hosts than this process
  std::vector<std::string> plugins{};  ///< files of kernels
  std::vector<std::string> python{};   ///< command of the Python that hosts a rank (host_ranks);
                                       ///< empty: longca-rank
  std::string no_python{};             ///< why Python's kernels cannot run, if any is asked for
  std::string suite_hash{};            ///< equal on all ranks, or they refuse
};

/// A command, and the variables that it needs in its environment.
struct RankCommand {
  std::vector<std::string> command;
  ChildProcess::Environment environment;
};

/// Stands for the parent's address on ranks to which rank 0 broadcasts it.
inline constexpr const char* kAddressOfRank0 = "rank-0";

/// longca-rank, or the Python that hosts a rank, and its arguments. `address`: where the parent
/// listens.
std::vector<std::string> rank_arguments(const RankMachine& machine, const RankStart& start,
                                        const std::string& address);

/// The command that starts `ranks` ranks (with Launcher::found, rank 0 alone). On one host each
/// gets its share of the cores; more ranks than cores get one thread each and yield while they
/// wait. Variables that the user has set take precedence. `scratch`: a folder for the launcher's
/// own files.
RankCommand rank_command(const RankMachine& machine, const RankStart& start, int ranks,
                         const std::string& address, const std::string& scratch);

/// What a launcher's output says about a rank that ended early.
struct LauncherReport {
  std::optional<int> rank;  ///< the first that ended
  std::string how;          ///< "was ended by signal 9 (Killed)", "ended itself with exit code 3"
  std::string said;         ///< the last line that is not the launcher's own
};

/// Parses the output of Open MPI's mpirun or of srun. What is not recognized is absent; where no
/// rank is named, `said` is the launcher's own last line.
LauncherReport read_launcher_report(const std::string& output);

}  // namespace longca
