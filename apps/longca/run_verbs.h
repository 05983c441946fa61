#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/record/record.h"
#include "bench/run/dry_run.h"
#include "bench/run/progress.h"
#include "bench/run/runner.h"
#include "bench/suite/cases.h"
#include "bench/suite/suite.h"
#include "core/run_files.h"

// What the verbs that run cells have in common.

namespace longca {

/// Options of `bench`, `cp` and `check`: axes, plug-ins, limits, progress.
struct RunArguments {
  std::string default_suite = "quick";
  std::string suite;  ///< "": none was named
  std::vector<std::string> axes;
  std::vector<std::string> plugins;
  std::optional<double> time_limit_s;
  std::optional<double> case_limit_s;
  std::optional<std::int64_t> memory_limit_mib;
  bool quiet = false;
  /// The only device of the cells, of `device_of` ("the platform h200x8"), not of this machine; "":
  /// as the axes say.
  std::string device;
  std::string device_of;
  std::string cells_from;  ///< the record file whose cells these are, if no suite's

  /// Adds -a, --plugin, --case-limit, --memory-limit, --quiet. Outlives the parsing.
  void add_options(CLI::App& verb);

  /// Loads the plug-ins, then the suite with the command line's axes and limits over it. Axes given
  /// without a suite are a problem of the user's own: its masks have the defaults of `longca mask`.
  /// Throws InputError.
  Suite load() const;
  /// What the run says before its first cell, a line each: which defaults it took without a suite,
  /// what the suite's exceptions left out, axes that were given twice, and those that no cell has.
  /// With --quiet neither defaults nor the latter.
  std::vector<std::string> notices(const Suite& chosen, const CaseList& list) const;
  Progress::Style progress_style() const;
  /// The files that a run of the suite reads.
  RunFiles files(const Suite& chosen) const;

 private:
  AxisValues given_axes() const;
};

/// Prints each on a line of stderr, after everything that may refuse the run: an error is one line.
void print_notices(std::span<const std::string> notices);

/// Throws InputError if the suite, with the command line's axes, has axes of ranks, which `verb`
/// does not take.
void refuse_axes_of_ranks(const Suite& suite, std::string_view verb);

/// The exit code that a shell gives a program ended by that signal.
int exit_code_of_signal(int signal);

/// Options of `bench` and `cp`, which record cells.
struct RecordArguments : RunArguments {
  std::string out;
  bool resume = false;
  bool across = false;
  bool force = false;
  bool dry_run = false;
  bool strict = false;
  bool require_ok = false;
  bool in_process = false;  ///< cells are computed in this process, and have no --resume
  std::int64_t rounds = 1;

  /// Adds SUITE, the options of RunArguments, --rounds, --time-limit, --out, --resume, --across,
  /// --force, --dry-run, --strict, --require-ok. Outlives the parsing.
  void add_options(CLI::App& verb);
  /// --out, or results/SUITE.jsonl; a run whose axes, plug-ins or cells are not the suite's own
  /// has a file of its own, results/SUITE-HASH.jsonl.
  std::filesystem::path output_path(const Suite& chosen) const;
  /// --rounds. Throws InputError for a number that no run can have.
  int round_count() const;
};

/// Runs cells in new processes and informs the listener of each; false if the run ended early.
using CellsFunction = std::function<bool(std::span<const Case> cases, RunListener& listener)>;

/// How many cells a verb has to make: all, or those that --dry-run lists.
inline std::size_t cells_to_make(const RecordArguments& arguments) {
  return arguments.dry_run && !arguments.resume ? kListedCells : kAllCases;
}

/// Lists the cells that a run would run, `size` of them in all: with --resume those that --out
/// lacks.
void show_dry_run(const RecordArguments& arguments, const Suite& suite, CaseList list,
                  SuiteSize size);

/// Runs the cells --rounds times (without what --out has already), writes each record at once, and
/// shows the table. `files`: what else the command reads and writes.
/// Throws InputError, VerdictFailed, and EndedEarly for a run that a signal or lost ranks ended.
void run_recorded(const RecordArguments& arguments, const Suite& suite, CaseList list,
                  RunFiles files, const CellsFunction& run_cells);

/// The same for cells of which the first ones matter most: begins each only if `may_begin`, in
/// --out, which is replaced, and shows progress alone. The records that it made.
std::vector<Record> run_while(const RecordArguments& arguments, const Suite& suite,
                              std::span<const Case> cases, RunFiles files,
                              const std::function<bool(const Case& c)>& may_begin,
                              const CellsFunction& run_cells);

}  // namespace longca
