// What a view says in words: statuses, axes, counts, the machine.

#include <fmt/format.h>

#include <array>

#include "report/view.h"

namespace longca {

std::span<const StatusCode> marked_statuses() {
  static constexpr std::array kMarked = {StatusCode::unsupported, StatusCode::unavailable,
                                         StatusCode::oom,         StatusCode::wrong,
                                         StatusCode::timeout,     StatusCode::crash};
  return kMarked;
}

std::string_view status_words(StatusCode code) {
  return code == StatusCode::oom ? "out of memory" : to_string(code);
}

std::string_view status_mark(StatusCode code) {
  switch (code) {
    case StatusCode::ok:
      return "";
    case StatusCode::unsupported:
      return "X";
    case StatusCode::unavailable:
      return "N";
    case StatusCode::oom:
      return "E";
    case StatusCode::wrong:
      return "W";
    case StatusCode::timeout:
      return "T";
    case StatusCode::crash:
      return "C";
  }
  return "?";
}

std::string join_axes(const AxisTexts& axes, std::string_view separator) {
  std::string text;
  for (const auto& [name, value] : axes) {
    text += fmt::format("{}{} {}", text.empty() ? "" : separator, name, value);
  }
  return text;
}

std::string describe_counts(const View& view) {
  std::string text = fmt::format("{} cell{}", view.cells(), view.cells() == 1 ? "" : "s");
  std::string_view separator = ": ";
  for (const auto& [status, n] : view.status_counts) {
    text += fmt::format("{}{} {}", separator, n, to_string(status));
    separator = ", ";
  }
  return text;
}

std::string describe_machine(const Record& record) {
  const nlohmann::json& env = record.env;
  const auto text_at = [&](const char* pointer) -> std::string {
    const nlohmann::json::json_pointer place(pointer);
    if (!env.is_object() || !env.contains(place)) return "";
    const auto& value = env.at(place);
    return value.is_string() ? value.get<std::string>() : value.is_number() ? value.dump() : "";
  };
  if (record.c.device != "cpu") return text_at("/gpus/0/model");
  std::string text = text_at("/cpu/model");
  if (const auto cores = text_at("/cpu/cores_usable"); !cores.empty()) {
    text += fmt::format("{}{} core{}", text.empty() ? "" : ", ", cores, cores == "1" ? "" : "s");
  }
  return text;
}

}  // namespace longca
