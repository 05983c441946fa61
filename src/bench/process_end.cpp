#include "bench/process_end.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace longca {

std::string describe_process_end(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    // Nobody here sends it: the system does when memory runs out.
    if (number == SIGKILL) return "was killed from outside, perhaps for lack of memory (SIGKILL)";
    const char* name = sigabbrev_np(number);
    return fmt::format("was ended by SIG{} ({})", name != nullptr ? name : std::to_string(number),
                       sigdescr_np(number) != nullptr ? sigdescr_np(number) : "unknown signal");
  }
  return fmt::format("ended itself with exit code {}", WEXITSTATUS(wait_status));
}

std::string last_line(const std::string& output) {
  const std::size_t end = output.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return "";
  const std::size_t newline = output.rfind('\n', end);
  const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
  return output.substr(begin, std::min<std::size_t>(end + 1 - begin, 200));
}

}  // namespace longca
