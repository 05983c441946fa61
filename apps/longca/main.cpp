#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "bench/build_info.h"
#include "bench/launch/rank_machine.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/printable.h"
#include "core/standard_streams.h"
#include "core/system_error.h"
#include "verbs.h"

namespace longca {
namespace {

enum ExitCode : int {
  completed = 0,
  verdict_failed = 1,
  bad_input = 2,
  internal_error = 70,  // EX_SOFTWARE of sysexits.h: a bug of ours, not of the input
  system_error = 71,    // EX_OSERR: the machine refused (memory, files, processes)
};

/// The verb that the command line chose, or nullptr.
const CLI::App* chosen_verb(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? nullptr : chosen.front();
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!verb->get_group().empty()) names.push_back(verb->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string explain_extra(const CLI::App& app, const std::string& argument) {
  const CLI::App* verb = chosen_verb(app);
  if (argument.starts_with('-')) {
    const std::string name = argument.substr(0, argument.find('='));
    const auto candidates = option_names(verb != nullptr ? *verb : app);
    return fmt::format("unknown option '{}'{}{}", name,
                       verb != nullptr ? " of " + verb->get_name() : "",
                       suggestion(name, candidates));
  }
  if (verb == nullptr) {
    return fmt::format("unknown verb '{}'{}", argument, suggestion(argument, verb_names(app)));
  }
  return fmt::format("{} takes no further argument, got '{}'", verb->get_name(), argument);
}

/// CLI11's message as the end of a sentence: one line, no capital, no full stop.
std::string as_clause(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  while (message.ends_with(' ') || message.ends_with('.')) message.pop_back();
  const auto is_lower = [](char c) { return std::islower(static_cast<unsigned char>(c)) != 0; };
  if (message.size() > 1 && is_lower(message[1])) {
    message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  }
  return message;
}

/// The sentence for a command line that CLI11 could not use, with the nearest verb or option that
/// exists. CLI11's own messages name neither the verb nor a suggestion.
std::string explain_usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* verb = chosen_verb(app);
  // What was not understood comes first: a mistyped option is often why another one is missing.
  const auto extras = app.remaining(true);
  if (!extras.empty()) return explain_extra(app, extras.front());
  if (verb == nullptr) return "a verb is missing; longca --help lists them";
  return fmt::format("{} (longca {} --help says more)", as_clause(error.what()), verb->get_name());
}

void add_verbs(CLI::App& app) {
  add_bench(app);
  add_cp(app);
  add_calibrate(app);
  add_simulate(app);
  add_check(app);
  add_compare(app);
  add_report(app);
  add_advise(app);
  add_list(app);
  add_lengths(app);
  add_mask(app);
  add_env(app);
  add_worker(app);
  add_probe_worker(app);
  add_completion(app);
}

/// Prints the sentence and returns `code`. Of several processes started together only the first
/// prints; the others wait, since mpirun ends all of them as soon as one has failed.
int fail(int code, const std::string& sentence) {
  if (const auto launch = find_mpi_launch(); launch && launch->rank > 0) {
    std::this_thread::sleep_for(std::chrono::seconds(5));
    return code;
  }
  fmt::print(stderr, "longca: {}\n", printable(sentence));
  return code;
}

/// The exit code of a command that would have exited with `code`: what it printed may be lost. A
/// reader that has closed its pipe (`longca list | head -1`) is no failure, and hides none; a full
/// disk is one.
int exit_code_with_output(int code) {
  const LostOutput lost = lost_output();
  if (lost.error == 0) return code;
  const int failed = fail(system_error, fmt::format("{} cannot be written: {}", lost.stream,
                                                    std::strerror(lost.error)));
  return code == completed ? failed : code;
}

int run_command_line(int argc, char** argv) {
  CLI::App app("Benchmarks long-context attention: every mask, every kernel, verified and timed.",
               "longca");
  app.set_version_flag("--version", "longca " + build_info().version);
  app.require_subcommand(1);
  app.get_formatter()->column_width(26);
  app.footer(
      "longca VERB --help says more. Exit codes: 0 done, 1 verdict failed, 2 bad input,\n"
      "70 a bug of longca, 71 the system failed; 128 + N ended by signal N.\n"
      "Example: longca bench -a mask=causal,document -a tokens=1K:8K:x2");
  add_verbs(app);
  app.get_help_ptr()->group("");  // so that all verbs fit on one screen; they have taken its name
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      app.exit(error);  // --help or --version: prints it
    } else {
      return fail(bad_input, explain_usage_error(app, error));
    }
  }
  return completed;
}

/// Runs, and makes one sentence of whatever ends the command.
int run_guarded(int argc, char** argv) {
  try {
    return run_command_line(argc, argv);
  } catch (const VerdictFailed&) {
    return verdict_failed;
  } catch (const EndedEarly& early) {
    return early.exit_code;
  } catch (const InputError& error) {
    return fail(bad_input, error.what());
  } catch (const SystemError& error) {
    return fail(system_error, error.what());
  } catch (const InternalError& error) {
    return fail(internal_error, fmt::format("internal error, please report it: {}", error.what()));
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(system_error,
                fmt::format("cannot use {}: {}", error.path1().string(), error.code().message()));
  } catch (const std::system_error& error) {
    return fail(system_error, error.what());
  } catch (const std::bad_alloc& error) {
    return fail(system_error, fmt::format("out of memory: {}", error.what()));
  } catch (const std::exception& error) {
    return fail(internal_error, fmt::format("internal error, please report it: {}", error.what()));
  }
}

}  // namespace
}  // namespace longca

int main(int argc, char** argv) {
  longca::guard_standard_streams();
  return longca::exit_code_with_output(longca::run_guarded(argc, argv));
}
