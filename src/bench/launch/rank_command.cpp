#include "bench/launch/rank_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace longca {
namespace {

/// Adds a variable unless the user has set it.
void add_default(ChildProcess::Environment& environment, const char* name, std::string value) {
  if (std::getenv(name) == nullptr) environment.emplace_back(name, std::move(value));
}

/// How mpirun places ranks on this host. As settings, not options, so that the user's own count.
void place_on_this_host(RankCommand& start, int cores, int ranks) {
  auto& environment = start.environment;
  if (ranks > cores) {
    add_default(environment, "OMPI_MCA_rmaps_base_oversubscribe", "1");
    add_default(environment, "OMPI_MCA_mpi_yield_when_idle", "1");
    add_default(environment, "OMPI_MCA_hwloc_base_binding_policy", "none");
    return;
  }
  // A core is what the system calls a CPU: with hyperthreads, half a core.
  add_default(environment, "OMPI_MCA_hwloc_base_use_hwthreads_as_cpus", "1");
  add_default(environment, "OMPI_MCA_rmaps_base_mapping_policy",
              fmt::format("slot:PE={}", cores / ranks));
  add_default(environment, "OMPI_MCA_hwloc_base_binding_policy", "hwthread");
}

/// mpirun hands ranks of other hosts its own variables only.
void pass_environment(std::vector<std::string>& command) {
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

}  // namespace longca
