#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>
#include <thread>

#include "bench/build_info.h"
#include "bench/launch/mpi_launch.h"
#include "core/error.h"
#include "usage.h"
#include "verbs.h"

namespace longca {
namespace {

enum ExitCode : int {
  kCompleted = 0,
  kVerdictFailed = 1,
  kBadInput = 2,
  kInternalError = 70,  // EX_SOFTWARE of sysexits.h: a bug of ours, not of the input
  kSystemError = 71,    // EX_OSERR: the machine refused (memory, files, processes)
};

void add_verbs(CLI::App& app) {
  add_bench(app);
  add_cp(app);
  add_check(app);
  add_report(app);
  add_list(app);
  add_lengths(app);
  add_mask(app);
  add_env(app);
  add_worker(app);
  add_completion(app);
}

/// Of several processes that were started together, the first speaks for all. mpirun ends all as
/// soon as one has failed, so that the others give it time.
int fail(int code, const std::string& sentence) {
  if (const auto launch = find_mpi_launch(); launch && launch->rank > 0) {
    std::this_thread::sleep_for(std::chrono::seconds(5));
    return code;
  }
  fmt::print(stderr, "longca: {}\n", sentence);
  return code;
}

/// A reader that has seen enough (`longca list | head -1`) is no failure; a full disk is.
int output_failed(int error) {
  if (error == EPIPE) return kCompleted;
  return fail(kSystemError,
              fmt::format("standard output cannot be written: {}", std::strerror(error)));
}

int run(int argc, char** argv) {
  CLI::App app("Benchmarks long-context attention: every mask, every kernel, verified and timed.",
               "longca");
  app.set_version_flag("--version", "longca " + build_info().version);
  app.require_subcommand(1);
  app.get_formatter()->column_width(26);
  app.footer(
      "longca VERB --help says more. Exit codes: 0 done, 1 verdict failed, 2 bad input.\n"
      "Example: longca bench -a mask=causal,document -a tokens=1K:8K:x2");
  add_verbs(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      app.exit(error);  // --help or --version: prints it
    } else {
      return fail(kBadInput, explain_usage_error(app, error));
    }
  }
  if (std::fflush(stdout) != 0) return output_failed(errno);
  return kCompleted;
}

}  // namespace
}  // namespace longca

int main(int argc, char** argv) {
  using namespace longca;
  // A closed pipe is an error of the write that meets it (a worker that died, a reader that left),
  // never the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  std::cout.exceptions(std::ios::badbit);
  try {
    return run(argc, argv);
  } catch (const VerdictFailed&) {
    return kVerdictFailed;
  } catch (const InputError& error) {
    return fail(kBadInput, error.what());
  } catch (const InternalError& error) {
    return fail(kInternalError, fmt::format("internal error, please report it: {}", error.what()));
  } catch (const std::ios_base::failure&) {
    return output_failed(errno);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::broken_pipe) return kCompleted;
    return fail(kSystemError, error.what());
  } catch (const std::bad_alloc& error) {
    return fail(kSystemError, fmt::format("out of memory: {}", error.what()));
  } catch (const std::exception& error) {
    return fail(kInternalError, fmt::format("internal error, please report it: {}", error.what()));
  }
}
