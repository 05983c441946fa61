#include "core/status.h"

#include <array>
#include <utility>

namespace longca {
namespace {

constexpr std::array<std::pair<StatusCode, std::string_view>, 7> kNames = {{
    {StatusCode::ok, "ok"},
    {StatusCode::unsupported, "unsupported"},
    {StatusCode::unavailable, "unavailable"},
    {StatusCode::oom, "oom"},
    {StatusCode::wrong, "wrong"},
    {StatusCode::timeout, "timeout"},
    {StatusCode::crash, "crash"},
}};

}  // namespace

std::string_view to_string(StatusCode code) {
  for (const auto& [value, name] : kNames) {
    if (value == code) return name;
  }
  return "?";
}

std::optional<StatusCode> parse_status_code(std::string_view text) {
  for (const auto& [value, name] : kNames) {
    if (name == text) return value;
  }
  return std::nullopt;
}

}  // namespace longca
