#pragma once

#include <string>

namespace longca {

/// "was ended by SIGSEGV (Segmentation fault)" or "ended itself with exit code 3", from waitpid's
/// status.
std::string describe_process_end(int wait_status);

/// The last line of what a process printed that is not blank, cut at 200 bytes.
std::string last_line(const std::string& output);

}  // namespace longca
