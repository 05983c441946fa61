#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace longca {

/// What a process that was started to answer one question said, or why it said nothing.
struct ProcessAnswer {
  std::optional<nlohmann::json> message;
  std::string why;               ///< "ended itself with exit code 3, saying: no licence"
  std::optional<int> exit_code;  ///< where it ended by itself
};

/// Starts `command` with "--socket N" appended and waits for its one message (WorkerProcess), at
/// most `limit_s` seconds; whatever it does with signals, nothing of it is left then.
ProcessAnswer ask_process(const std::vector<std::string>& command, double limit_s);

}  // namespace longca
