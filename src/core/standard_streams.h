#pragma once

namespace longca {

/// Makes sure of descriptors 0 to 2, so that no file of the run becomes one of them: one that is
/// closed is /dev/null from here on. Gives stdout, stderr, std::cout and std::cerr a buffer whose
/// writes never fail where they are made: what a closed pipe or a full disk does not take is
/// dropped, and remembered. A run thus goes on for its records. Signals that would end the process
/// instead (SIGPIPE, SIGXFSZ) are ignored, here and in processes that it starts. Call first in
/// main.
void guard_standard_streams();

/// What became of standard output and standard error so far. Flushes both.
struct LostOutput {
  const char* stream = "";  ///< "standard output", "standard error", or "" if nothing was lost
  int error = 0;            ///< errno of the write; EPIPE alone (a reader that left) is no loss
};
LostOutput lost_output();

}  // namespace longca
