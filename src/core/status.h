#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace longca {

/// The outcome of one cell of the benchmark. Every outcome but `ok` carries a sentence that says
/// why.
enum class StatusCode {
  ok,           ///< verified and timed
  unsupported,  ///< the kernel or scheme cannot do this problem
  unavailable,  ///< it could, but this machine lacks something (the reason says what to install)
  oom,          ///< needs more memory than there is
  wrong,        ///< ran, and disagreed with the reference
  timeout,      ///< did not end within the case's time limit
  crash,        ///< ended its process, or threw
};

std::string_view to_string(StatusCode code);
std::optional<StatusCode> parse_status_code(std::string_view text);

/// A code and one sentence that names the offending thing, its value and its limit.
struct Status {
  StatusCode code = StatusCode::ok;
  std::string reason;

  bool ok() const { return code == StatusCode::ok; }

  static Status unsupported(std::string reason) {
    return {StatusCode::unsupported, std::move(reason)};
  }
  static Status unavailable(std::string reason) {
    return {StatusCode::unavailable, std::move(reason)};
  }
};

/// What `Kernel::supports` answers: ok, unsupported or unavailable.
using Support = Status;

}  // namespace longca
