#pragma once

#include <string>

#include "bench/record/record.h"

namespace longca {

/// The command that measures a record's case again, all its draws, as a line for a POSIX shell. It
/// names every axis that the case has.
struct RepeatCommand {
  std::string row;      ///< "longca bench -a kernel=fa3 -a pass=forward -a mode=burst"
  std::string problem;  ///< " -a mask=causal -a tokens=8192 …": equal for cells of equal work

  std::string text() const { return row + problem; }
};
RepeatCommand repeat_command(const Record& record);

/// The text as one word of a POSIX shell: in single quotes, unless it needs none.
std::string shell_quoted(const std::string& text);

}  // namespace longca
