#include "bench/launch/launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string_view>

#include "bench/run/protocol.h"
#include "core/process.h"

namespace longca {
namespace {

/// Adds a variable unless the user has set it.
void add_default(ChildProcess::Environment& environment, const char* name, std::string value) {
  if (std::getenv(name) == nullptr) environment.emplace_back(name, std::move(value));
}

/// How mpirun places ranks on this host: variables, not options, so that the user's override them.
void place_on_this_host(RankCommand& start, int cores, int ranks) {
  auto& environment = start.environment;
  if (ranks > cores) {
    add_default(environment, "OMPI_MCA_rmaps_base_oversubscribe", "1");
    add_default(environment, "OMPI_MCA_mpi_yield_when_idle", "1");
    add_default(environment, "OMPI_MCA_hwloc_base_binding_policy", "none");
    return;
  }
  // Cores are counted as the system's CPUs, which are hardware threads.
  add_default(environment, "OMPI_MCA_hwloc_base_use_hwthreads_as_cpus", "1");
  add_default(environment, "OMPI_MCA_rmaps_base_mapping_policy",
              fmt::format("slot:PE={}", cores / ranks));
  add_default(environment, "OMPI_MCA_hwloc_base_binding_policy", "hwthread");
}

/// Has mpirun pass these variables on: to other hosts it passes only its own.
void pass_environment(std::vector<std::string>& command) {
  command.insert(command.end(),
                 {"-x", kSecretVariable});  // by name: its value is on no command line
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view name =
        std::string_view(*entry).substr(0, std::string_view(*entry).find('='));
    for (const std::string_view prefix : {"LONGCA_", "NCCL_", "CUDA_", "LD_LIBRARY_PATH"}) {
      if (name.starts_with(prefix)) command.insert(command.end(), {"-x", std::string(name)});
    }
  }
}

RankCommand mpirun_command(const RankMachine& machine, const RankStart& start, int ranks,
                           const std::string& scratch) {
  RankCommand result{{machine.mpirun.string(), "-n", std::to_string(ranks)}, {}};
  if (::geteuid() == 0) {  // in a container, as a rule
    add_default(result.environment, "OMPI_ALLOW_RUN_AS_ROOT", "1");
    add_default(result.environment, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
  add_default(result.environment, "OMPI_MCA_orte_tmpdir_base", scratch);
  // PMIx 5 shares its tables in files that ranks which are killed leave in /tmp.
  add_default(result.environment, "PMIX_MCA_gds", "hash");
  if (start.hostfile.empty()) {
    place_on_this_host(result, machine.cores, ranks);
  } else {
    result.command.insert(result.command.end(), {"--hostfile", start.hostfile});
    pass_environment(result.command);
  }
  return result;
}

}  // namespace

std::vector<std::string> rank_arguments(const RankMachine& machine, const RankStart& start,
                                        const std::string& address) {
  std::vector<std::string> arguments = start.python;
  if (arguments.empty()) arguments.push_back(machine.program.string());
  arguments.insert(arguments.end(), {"--connect", address, "--suite-hash", start.suite_hash});
  for (const std::string& plugin : start.plugins) {
    arguments.insert(arguments.end(), {"--plugin", std::filesystem::absolute(plugin).string()});
  }
  if (!start.no_python.empty()) {
    arguments.insert(arguments.end(), {"--no-python", start.no_python});
  }
  return arguments;
}

RankCommand rank_command(const RankMachine& machine, const RankStart& start, int ranks,
                         const std::string& address, const std::string& scratch) {
  RankCommand result;
  switch (start.launcher) {
    case Launcher::mpirun:
      result = mpirun_command(machine, start, ranks, scratch);
      break;
    case Launcher::srun:
      result.command = {find_program("srun").string(), "-n", std::to_string(ranks),
                        "--kill-on-bad-exit=1"};
      break;
    case Launcher::found:
      break;
  }
  const auto arguments = rank_arguments(machine, start, address);
  result.command.insert(result.command.end(), arguments.begin(), arguments.end());
  return result;
}

namespace {

// std::regex takes stack in proportion to the text, and a rank may print what it likes.
constexpr std::size_t kMaxLine = 1024;      ///< bytes; a longer line is not a launcher's own
constexpr std::size_t kMaxMessages = 4096;  ///< bytes of all messages; the rest is left out

/// Whether a line is of the stack trace that Open MPI prints on a signal: "[node1:05971] …", or
/// what is left of one that another rank's cut: "[ 2] …", "…(+0x3c050)[0x7fafb945a050]".
bool is_stack_line(const std::string& line) {
  static const std::regex stack(R"(\[[^\]]+:\d+\].*|(\[ *\d+\] )?\S*\(\S*\)\[0x[0-9a-f]+\] *)");
  return line.size() <= kMaxLine && std::regex_match(line, stack);
}

/// What hwloc says in a rank, where a container shows it no topology.
bool is_of_hwloc(const std::string& line) {
  return line.starts_with("hwloc/");
}

bool is_rule(const std::string& line) {
  return line.size() > 20 && line.find_first_not_of('-') == std::string::npos;
}

/// A launcher's output taken apart: mpirun's messages, which stand between rules, and the ranks'.
struct Split {
  std::string messages;  ///< each on one line
  std::string ranks;
};

Split split_output(const std::string& output) {
  Split split;
  bool in_message = false;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (is_rule(line)) {
      if (in_message) split.messages += '\n';
      in_message = !in_message;
    } else if (in_message) {
      split.messages += line + ' ';
    } else if (line.starts_with("srun: ") || line.starts_with("slurmstepd: ")) {
      split.messages += line + '\n';
    } else if (!is_stack_line(line) && !is_of_hwloc(line)) {
      split.ranks += line + '\n';
    }
  }
  split.messages.resize(std::min(split.messages.size(), kMaxMessages));
  return split;
}

/// Finds the rank that ended and how, from the launchers' messages.
void read_messages(const std::string& messages, LauncherReport& report) {
  static const std::regex signalled(
      R"(process rank (\d{1,9}) with PID \d+ on node \S+ exited on (signal \d+ \([^)]*\)))");
  static const std::regex exited(R"(Process name: \[\[\d+,\d+\],(\d{1,9})\]\s+Exit code:\s+(\d+))");
  static const std::regex aborted(
      R"(MPI_ABORT was invoked on rank (\d{1,9}) in communicator \S+.*?with errorcode (\d+))");
  static const std::regex left(
      R"(process rank (\d{1,9}) with PID \d+ on node \S+ exiting improperly)");
  static const std::regex slurm(R"(task (\d{1,9}): (Exited with exit code \d+|[A-Z][a-z ]+))");
  std::smatch found;
  if (std::regex_search(messages, found, signalled)) {
    report.how = "was ended by " + found[2].str();
  } else if (std::regex_search(messages, found, aborted) ||
             std::regex_search(messages, found, exited)) {
    report.how = "ended itself with exit code " + found[2].str();
  } else if (std::regex_search(messages, found, left)) {
    report.how = "ended itself with exit code 0";
  } else if (std::regex_search(messages, found, slurm)) {
    report.how = "ended (" + found[2].str() + ")";
  } else {
    return;
  }
  report.rank = std::stoi(found[1].str());
}

}  // namespace

LauncherReport read_launcher_report(const std::string& output) {
  const Split split = split_output(output);
  LauncherReport report;
  read_messages(split.messages, report);
  report.said = last_line(split.ranks);
  if (!report.rank && report.said.empty()) report.said = last_line(split.messages);
  return report;
}

}  // namespace longca
