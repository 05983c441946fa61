#pragma once

#include <optional>
#include <string>

namespace longca {

/// What a launcher's output says about a rank that ended before its time.
struct LauncherReport {
  std::optional<int> rank;  ///< the first that ended
  std::string how;          ///< "was ended by signal 9 (Killed)", "ended itself with exit code 3"
  std::string said;         ///< the last line that is not the launcher's own
};

/// Reads the output of Open MPI's mpirun, or of srun. What is not understood is absent, and where
/// no rank is named, `said` is the launcher's own last sentence.
LauncherReport read_launcher_report(const std::string& output);

}  // namespace longca
