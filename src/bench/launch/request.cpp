#include "bench/launch/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/build_info.h"
#include "bench/launch/rank_machine.h"
#include "bench/python_host.h"
#include "bench/run/protocol.h"
#include "bench/suite/scheme_axes.h"
#include "core/counted.h"
#include "core/device.h"
#include "core/error.h"
#include "parallel/plan/rank_limits.h"

namespace longca {
namespace {

std::string counted(int count, const char* singular, const char* plural) {
  return count == 0 ? fmt::format("there are no {}", plural)
                    : fmt::format("there {} {} {}", count == 1 ? "is" : "are", count,
                                  count == 1 ? singular : plural);
}

bool too_many_ranks(const Case& c, const RankPlaces& places) {
  const int max_ranks = c.device == "cpu" ? places.max_cpu : places.max_cuda;
  return *c.ranks > max_ranks;
}

/// As schemes see it: that of the ranks themselves, unless another one is asked for.
int ranks_of_node(int of_host) {
  return asked_ranks_per_node().value_or(of_host);
}

bool factor_does_not_divide(const Case& c) {
  return c.factor && *c.ranks % *c.factor != 0;
}

}  // namespace

std::string host_limit(int cores) {
  return fmt::format("the {} of this host {} at most {}; a --hostfile names more hosts",
                     longca::counted(cores, "core"), cores == 1 ? "takes" : "take",
                     max_ranks_of_host(cores));
}

RankPlaces places_of(const RankStart& start) {
  if (!start.hostfile.empty()) {
    const HostSlots slots = hostfile_slots(start.hostfile);
    const std::string limit = fmt::format("the hostfile has {} slots", slots.all);
    return {{slots.all, slots.all, ranks_of_node(slots.of_first_host)},
            slots.all,
            slots.all,
            limit,
            limit,
            true};
  }
  const RankMachine& machine = rank_machine();
  // srun's nodes are unknown here: srun reports itself what is missing.
  if (start.launcher == Launcher::srun) {
    const std::string limit = fmt::format("a launch has at most {}", kMaxRunningRanks);
    return {{machine.cores, std::max(machine.gpus, 1), ranks_of_node(kRanksPerNode)},
            kMaxRunningRanks,
            kMaxRunningRanks,
            limit,
            limit,
            true};
  }
  return {{machine.cores, machine.gpus, ranks_of_node(kMaxRunningRanks)},
          max_ranks_of_host(machine.cores),
          machine.gpus,
          host_limit(machine.cores),
          counted(machine.gpus, "GPU", "GPUs"),
          false};
}

RankPlaces places_of(const MpiLaunch& launch) {
  const std::string limit = fmt::format("this launch has {} processes", launch.size);
  return {{launch.size, launch.size, ranks_of_node(launch.per_node)},
          launch.size,
          launch.size,
          limit,
          limit,
          launch.per_node < launch.size};
}

void refuse_impossible(std::span<const Case> cases, const RankPlaces& places) {
  const Case& first = cases.front();
  if (std::ranges::all_of(cases, [&](const Case& c) { return too_many_ranks(c, places); })) {
    throw_input_error("{} {} {}, and {}", counted(*first.ranks, "rank"),
                      *first.ranks == 1 ? "needs" : "need",
                      first.device == "cpu" ? "a place each" : "a GPU each",
                      first.device == "cpu" ? places.limit_cpu : places.limit_cuda);
  }
  if (std::ranges::none_of(cases, [](const Case& c) { return check_transport(c).ok(); })) {
    throw InputError(check_transport(first).reason);
  }
  if (std::ranges::all_of(cases, factor_does_not_divide)) {
    throw_input_error("the factor {} does not divide {} ranks", *first.factor, *first.ranks);
  }
}

namespace {

/// Replaces the interpreter's name by its path: mpirun puts its own folder first on the ranks'
/// PATH, where another Python may be. Symbolic links are kept, by which Python finds its
/// environment.
void resolve_interpreter(std::vector<std::string>& command) {
  for (std::string& word : command) {
    if (word == "/usr/bin/env") continue;
    const std::filesystem::path program = find_program(word);
    if (!program.empty()) word = program.string();
    return;
  }
}

}  // namespace

void host_ranks(RankStart& start, std::span<const Case> cases) {
  if (!wants_python(start.plugins, cases, start.several_hosts || rank_machine().gpus > 0)) return;
  const Support& python = python_available();
  if (python.ok()) {
    start.python = python_rank_command();
    resolve_interpreter(start.python);
  } else {
    start.no_python = python.reason;
  }
}

std::string hash_of_suite(const Suite& suite, std::span<const Case> cases) {
  std::string text = build_info().version + nlohmann::json(suite.limits).dump();
  for (const Case& c : cases) text += '\n' + c.key();
  return fmt::format(
      "{:016x}",
      Device::get(DeviceKind::cpu).hash(0, text.data(), static_cast<std::int64_t>(text.size())));
}

}  // namespace longca
