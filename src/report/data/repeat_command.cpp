#include "report/data/repeat_command.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "bench/suite/axes.h"
#include "report/data/draws.h"

namespace longca {

std::string shell_quoted(const std::string& text) {
  constexpr std::string_view kPlain = "_.,:=/+-";
  bool is_plain = !text.empty();
  std::string quoted = "'";
  for (const char letter : text) {
    const bool is_word = std::isalnum(static_cast<unsigned char>(letter)) != 0;
    is_plain = is_plain && (is_word || kPlain.find(letter) != std::string_view::npos);
    if (letter == '\'') {
      quoted += "'\\''";
    } else {
      quoted += letter;
    }
  }
  return is_plain ? text : quoted + "'";
}

namespace {

std::string verb_of(const Case& c) {
  if (c.platform) return "longca simulate --platform " + shell_quoted(*c.platform);
  return c.scheme ? "longca cp" : "longca bench";
}

/// The axis as " -a tokens=8192"; "" where the case has none, or --platform says it.
std::string axis_argument(const Axis& axis, const Record& record) {
  const bool by_platform = record.c.platform && (axis.name == "platform" || axis.name == "mode");
  if (by_platform || !axis.text(record.c)) return "";
  if (axis.name == "simulated_mode") return " -a mode=" + *record.c.simulated_mode;
  return " -a " + shell_quoted(axis.name + "=" + *axis_text(axis, record));
}

}  // namespace

RepeatCommand repeat_command(const Record& record) {
  RepeatCommand command{verb_of(record.c), ""};
  for (const Axis& axis : axis_table()) {
    (shapes_problem(axis) ? command.problem : command.row) += axis_argument(axis, record);
  }
  return command;
}

std::string command_but_for(const Record& record, std::span<const std::string_view> open) {
  std::string command = verb_of(record.c);
  for (const Axis& axis : axis_table()) {
    if (std::ranges::find(open, axis.name) == open.end()) command += axis_argument(axis, record);
  }
  return command;
}

}  // namespace longca
