#include "report/data/repeat_command.h"

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

RepeatCommand repeat_command(const Record& record) {
  const Case& c = record.c;
  const bool simulated = c.platform.has_value();
  RepeatCommand command{simulated  ? "longca simulate --platform " + shell_quoted(*c.platform)
                        : c.scheme ? "longca cp"
                                   : "longca bench",
                        ""};
  for (const Axis& axis : axis_table()) {
    if (!axis.text(c)) continue;
    if (simulated && (axis.name == "platform" || axis.name == "mode")) continue;  // not given by -a
    const auto value = axis_text(axis, record);
    std::string& part = shapes_problem(axis) ? command.problem : command.row;
    part += " -a " + shell_quoted(axis.name + "=" + *value);
  }
  return command;
}

}  // namespace longca
