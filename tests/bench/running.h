#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "core/process.h"

namespace longca::testing {

/// Whether some process has `argument` on its command line.
inline bool is_running(const std::string& argument) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (proc_text(entry.path() / "cmdline").find(argument) != std::string::npos) return true;
  }
  return false;
}

/// Waits for such processes to end; false if one is still there after `limit`.
inline bool all_end(const std::string& argument,
                    std::chrono::milliseconds limit = std::chrono::seconds(5)) {
  constexpr std::chrono::milliseconds kLook(20);
  for (auto waited = std::chrono::milliseconds(0); waited < limit; waited += kLook) {
    if (!is_running(argument)) return true;
    std::this_thread::sleep_for(kLook);
  }
  return false;
}

}  // namespace longca::testing
