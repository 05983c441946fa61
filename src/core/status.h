#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace longca {

/// The outcome of one cell of the benchmark. Every outcome but `ok` carries a reason, one sentence.
enum class StatusCode {
  ok,           ///< verified and timed
  unsupported,  ///< the kernel or scheme cannot do this problem
  unavailable,  ///< this machine or build lacks something (the reason says what to install)
  oom,          ///< an allocation failed, or would pass the memory limit
  wrong,        ///< the result disagrees with the reference
  timeout,      ///< exceeded the case's time limit
  crash,        ///< threw, or killed its worker process
};

inline constexpr std::array<std::pair<StatusCode, std::string_view>, 7> kStatusNames = {{
    {StatusCode::ok, "ok"},
    {StatusCode::unsupported, "unsupported"},
    {StatusCode::unavailable, "unavailable"},
    {StatusCode::oom, "oom"},
    {StatusCode::wrong, "wrong"},
    {StatusCode::timeout, "timeout"},
    {StatusCode::crash, "crash"},
}};

constexpr std::string_view to_string(StatusCode code) {
  for (const auto& [value, name] : kStatusNames) {
    if (value == code) return name;
  }
  return "?";
}

constexpr std::optional<StatusCode> parse_status_code(std::string_view text) {
  for (const auto& [value, name] : kStatusNames) {
    if (name == text) return value;
  }
  return std::nullopt;
}

/// A code and, unless ok, one sentence that names the offending thing, its value and its limit.
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

/// The answer of `Kernel::supports`: ok, unsupported or unavailable.
using Support = Status;

}  // namespace longca
