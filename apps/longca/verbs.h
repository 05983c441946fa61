#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace longca {

/// Each verb adds its subcommand and, as the subcommand's callback, what it does. A callback throws
/// InputError for bad input (exit 2) or VerdictFailed for a verdict that failed (exit 1). What a
/// verb answers goes to stdout; what it says on the way goes to stderr.
void add_list(CLI::App& app);
/// What `list` takes.
std::vector<std::string> listable();
void add_lengths(CLI::App& app);
void add_mask(CLI::App& app);
void add_bench(CLI::App& app);
void add_cp(CLI::App& app);
void add_check(CLI::App& app);
void add_report(CLI::App& app);
void add_env(CLI::App& app);
/// Prints the shell completion of all verbs that `app` has, so it is added last.
void add_completion(CLI::App& app);
/// Hidden: the process that runs cases for `bench` and `check`.
void add_worker(CLI::App& app);

/// A command ran to its end and its verdict is no: exit 1. What to say was said already.
struct VerdictFailed {};

}  // namespace longca
