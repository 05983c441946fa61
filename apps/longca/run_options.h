#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/progress.h"
#include "bench/runner.h"
#include "bench/suite.h"

namespace longca {

/// What the verbs that run cells have in common: axes, plug-ins, limits, progress.
struct RunArguments {
  std::string suite = "quick";
  std::vector<std::string> axes;
  std::vector<std::string> plugins;
  std::optional<double> time_limit_s;
  std::optional<double> case_limit_s;
  std::optional<std::int64_t> memory_limit_mib;
  bool quiet = false;

  /// Adds -a, --plugin, --case-limit, --memory-limit, --quiet. Outlives the parsing.
  void add_options(CLI::App& verb);

  /// Loads the plug-ins, then the suite with the command line's axes and limits over it. Throws
  /// InputError.
  Suite load() const;
  Progress::Style progress_style() const;
};

/// Throws InputError if the suite, with the command line's axes, has axes of ranks, which `verb`
/// does not take.
void refuse_axes_of_ranks(const Suite& suite, std::string_view verb);

/// The exit code that a shell gives a program ended by that signal.
int exit_code_of_signal(int signal);

}  // namespace longca
