#pragma once

#include <functional>
#include <span>
#include <string>

#include "bench/cases.h"
#include "run_options.h"

namespace longca {

/// What the verbs that record cells, `bench` and `cp`, have in common.
struct RecordArguments : RunArguments {
  std::string out;
  bool resume = false;
  bool dry_run = false;
  bool strict = false;

  /// Adds SUITE, the options of RunArguments, --time-limit, --out, --resume, --dry-run, --strict.
  /// Outlives the parsing.
  void add_options(CLI::App& verb);
};

/// Runs cells and tells the listener of each; false if the run ended early.
using CellsFunction = std::function<bool(std::span<const Case> cases, RunListener& listener)>;

/// Runs the cells, those that --out has already left out, writes each record down as it comes, and
/// shows the table; with --dry-run lists them instead. Returns the exit code: that of a signal or
/// of the system for a run that ended early, or 0. Throws InputError, VerdictFailed.
int run_recorded(const RecordArguments& arguments, const Suite& suite, CaseList list,
                 const CellsFunction& run_cells);

}  // namespace longca
