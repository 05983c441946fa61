#pragma once

#include <span>
#include <string>
#include <string_view>

#include "bench/record/record.h"

namespace longca {

/// The command that measures a record's case again, all its draws, as a line for a POSIX shell. It
/// names every axis that the case has and, of simulated cells, the platform, figures and records of
/// the run. Files are named as the run named them; where the record does not say how, by their name
/// alone, so that the command says which one is missing.
struct RepeatCommand {
  std::string row;      ///< "longca bench -a kernel=fa3 -a pass=forward -a mode=burst"
  std::string problem;  ///< " -a mask=causal -a tokens=8192 …": equal for cells of equal work

  std::string text() const { return row + problem; }
};
RepeatCommand repeat_command(const Record& record);

/// The axes of the record's case but those named in `open`, as " -a mask=causal …" after the verb
/// that runs it: what a caller completes to a command for other problems of the kind.
std::string command_but_for(const Record& record, std::span<const std::string_view> open);

/// The text as one word of a POSIX shell: in single quotes, unless it needs none.
std::string shell_quoted(const std::string& text);

}  // namespace longca
