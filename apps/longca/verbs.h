#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace longca {

/// Each verb adds its subcommand and, as the subcommand's callback, what it does. A callback throws
/// InputError for bad input (exit 2) or VerdictFailed for a verdict that failed (exit 1). What a
/// verb answers goes to stdout, its progress to stderr.
void add_list(CLI::App& app);
/// The arguments that `list` accepts.
std::vector<std::string> listable();
void add_lengths(CLI::App& app);
void add_mask(CLI::App& app);
void add_bench(CLI::App& app);
void add_cp(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_simulate(CLI::App& app);
void add_check(CLI::App& app);
void add_compare(CLI::App& app);
void add_report(CLI::App& app);
void add_advise(CLI::App& app);
void add_env(CLI::App& app);
/// Prints the shell completion of all verbs that `app` has, so it is added last.
void add_completion(CLI::App& app);
/// Hidden: the process that runs cases for `bench` and `check`.
void add_worker(CLI::App& app);

/// Hidden: the process that measures the device for `calibrate`.
void add_probe_worker(CLI::App& app);

/// Thrown after a command has run to its end and reported a failed verdict: exit 1.
struct VerdictFailed {};

inline constexpr int kInternalError = 70;  ///< EX_SOFTWARE of sysexits.h: a bug of ours
inline constexpr int kSystemError = 71;    ///< EX_OSERR: the machine refused, or has lost ranks

/// Thrown after a command that was ended early, by a signal for example, has said so.
struct EndedEarly {
  int exit_code;
};

}  // namespace longca
