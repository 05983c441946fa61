#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "bench/build_info.h"
#include "bench/launch/rank_machine.h"
#include "core/error.h"
#include "core/printable.h"
#include "core/standard_streams.h"
#include "core/system_error.h"
#include "core/thread_pool.h"
#include "usage.h"
#include "verbs.h"

namespace longca {
namespace {

enum ExitCode : int {
  completed = 0,
  verdict_failed = 1,
  bad_input = 2,
  internal_error = kInternalError,
  system_error = kSystemError,
};

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

/// The arguments as the parser takes them, the last one first: `help` and `help VERB` are other
/// words for --help. Of what is no verb the parser says so.
std::vector<std::string> arguments_of(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    const bool names_verb = !arguments.empty() &&
                            std::ranges::any_of(app.get_subcommands({}), [&](const CLI::App* verb) {
                              return verb->get_name() == arguments.front();
                            });
    if (arguments.empty() || arguments.front().starts_with('-') || names_verb) {
      arguments.emplace_back("--help");
    }
  }
  std::ranges::reverse(arguments);
  return arguments;
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
  set_up_usage(app);
  UnlistedOptions unlisted(app);
  try {
    app.parse(arguments_of(app, argc, argv));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      unlisted.hide();
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
    wanted_threads();  // before a verb takes a bad one for a failure of what it runs
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
