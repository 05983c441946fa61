#pragma once

#include <map>
#include <string>
#include <vector>

namespace longca::testing {

/// What a program did, seen from outside.
struct ProcessResult {
  int exit_code = -1;  ///< 128 + the signal's number if it was killed, as in a shell
  std::string out;
  std::string err;
};

/// How to start it.
struct ProcessOptions {
  std::string input{};                               ///< what it reads on stdin
  std::string directory{};                           ///< where it runs; "" for here
  std::map<std::string, std::string> environment{};  ///< beside those of this process
  double timeout_s = 120;                            ///< killed after that: 128 + SIGKILL
};

/// Runs `command` (a program, found on the PATH if it is no path, and its arguments) to its end.
/// Throws std::runtime_error if it cannot be started.
ProcessResult run_process(const std::vector<std::string>& command,
                          const ProcessOptions& options = {});

/// The `longca` of this build, or the one that $LONGCA_TEST_PROGRAM names.
std::string program_of_tests();

/// Runs the `longca` of this build, or the one that $LONGCA_TEST_PROGRAM names.
ProcessResult run_longca(const std::vector<std::string>& arguments,
                         const ProcessOptions& options = {});

}  // namespace longca::testing
