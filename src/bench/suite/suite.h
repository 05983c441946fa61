#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/suite/axes.h"

namespace longca {

/// How long and in how much memory cells may run: a suite's [run] table, and options of the
/// commands.
struct RunLimits {
  static constexpr double kMaxSeconds = 1e9;                            ///< of a limit: 30 years
  static constexpr std::int64_t kMaxMemoryMib = std::int64_t{1} << 40;  ///< 2⁶⁰ bytes
  double time_limit_s = 1.0;  ///< timing one cell stops here if it has not converged before
  /// Below 7 repetitions timing goes on beyond its limit, however long one takes, up to here.
  double sample_budget_s = 10.0;
  double case_limit_s = 120.0;    ///< a cell that has not ended by then is killed: `timeout`
  double verify_budget_s = 10.0;  ///< CPU time for the reference, per problem
  double cool_down_ms = 1.0;      ///< pause between two repetitions of a burst
  /// Memory that one cell may take; 0: what the machine and its cgroup have left.
  std::int64_t memory_limit_mib = 0;
};

/// A rule of a suite for some of its cells: [[exceptions]].
struct SuiteException {
  AxisValues when;   ///< the cells that have one of these values on every axis named
  std::string skip;  ///< why they are left out, or "" and
  AxisValues set;    ///< the values (one per axis) that they have instead
};

/// A product of axes with exceptions, from a TOML file:
///   description = "…"
///   only_what_runs = true           # see leave_out_what_cannot_run
///   [axes]            # numbers, texts as on the command line, or arrays of them
///   mask = ["causal", "document"]
///   tokens = "1K:64K:x2"
///   [[exceptions]]
///   when = { kernel = "naive", tokens = "64K" }
///   skip = "takes an hour"          # or: set = { dtype = "float32" }
///   [run]
///   time_limit_s = 2
struct Suite {
  std::string name;         ///< the file's name without .toml
  std::string description;  ///< one line
  std::filesystem::path path;
  AxisValues axes;
  std::vector<SuiteException> exceptions;
  RunLimits limits;
  bool only_what_runs = false;
};

/// Reads a suite's text. `path` names it in errors. Throws as parse_strict_toml does, and
/// InputError with file, line and column for an unknown key (nearest suggested), a value that its
/// axis does not take, more than 100 exceptions.
Suite parse_suite(std::string_view text, const std::filesystem::path& path);

/// The suite called `name` in $LONGCA_CONFIGS or the checkout's configs/, or the file `name` if it
/// ends in ".toml". Throws InputError that suggests the nearest name.
Suite load_suite(const std::string& name);

/// Name and file of every suite that load_suite finds by name, in order of names.
struct SuiteFile {
  std::string name;
  std::filesystem::path path;
};
std::vector<SuiteFile> available_suites();

/// Replaces the suite's axes by the command line's. Exceptions go on applying, to the new values
/// too, but none sets an axis that the command line gives. `tokens` and `tokens_per_rank` are one
/// axis here; where none is given, masks of the user's own bring theirs.
void override_axes(Suite& suite, const AxisValues& by_hand);

/// If the suite says only_what_runs and the command line names no kernel, leaves out, with the
/// reason: devices that this machine lacks (unless the command line names the device), and kernels
/// on devices that they do not run on. What is named gets its record, `unavailable` say.
void leave_out_what_cannot_run(Suite& suite, const AxisValues& by_hand);

/// Removes the axes that masks depend on (window, block, …), and their values in exceptions: they
/// get their standards then, those of `longca mask`.
void drop_mask_axes(Suite& suite);

/// The name of an axis that only cells over ranks have, if there is one among `axes`.
std::optional<std::string> axis_of_ranks(const AxisValues& axes);

}  // namespace longca
