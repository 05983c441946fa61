#include "bench/launch/rank_machine.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "bench/data_directory.h"
#include "core/cuda/cuda_device.h"
#include "core/device.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/nearest.h"
#include "core/parse.h"
#include "core/process.h"
#include "core/thread_pool.h"
#include "parallel/plan/rank_limits.h"
#include "parallel/transport/transports.h"

namespace longca {
namespace {

namespace fs = std::filesystem;

/// longca-rank, which is beside this program or, in a build folder, beside this program's folder.
fs::path rank_program() {
  const fs::path folder = program_directory();
  for (const fs::path& path : {folder / "longca-rank", folder.parent_path() / "rank/longca-rank"}) {
    if (fs::path program = find_program(path.string()); !program.empty()) return program;
  }
  return {};
}

RankMachine inspect_machine() {
  const char* chosen = std::getenv("LONGCA_MPIRUN");
  const std::string mpirun = chosen != nullptr && *chosen != '\0' ? chosen : "mpirun";
  return {rank_program(), find_program(mpirun), available_cpus(), count_cuda_devices()};
}

}  // namespace

const RankMachine& rank_machine() {
  static const RankMachine machine = inspect_machine();
  return machine;
}

Support ranks_are_built() {
  if (!rank_machine().program.empty()) return {};
  return Support::unavailable(
      "this build is without MPI: install libopenmpi-dev and openmpi-bin, and build again");
}

Support mpirun_is_here() {
  if (!rank_machine().mpirun.empty()) return {};
  const char* chosen = std::getenv("LONGCA_MPIRUN");
  if (chosen != nullptr && *chosen != '\0') {
    return Support::unavailable("LONGCA_MPIRUN is '" + std::string(chosen) +
                                "', which is no program");
  }
  return Support::unavailable("there is no mpirun: install openmpi-bin");
}

Support srun_is_here() {
  if (!find_program("srun").empty()) return {};
  return Support::unavailable(
      "there is no srun on the PATH: it comes with Slurm, elsewhere mpirun starts ranks");
}

Support transport_here(const std::string& name) {
  if (Support built = ranks_are_built(); !built.ok()) return built;
  if (Support here = mpirun_is_here(); !here.ok()) return here;
  if (name == "mpi") return {};
  if (const Support& gpu = Device::available(DeviceKind::cuda); !gpu.ok()) return gpu;
  return name == "nccl" ? nccl_available() : Support{};
}

namespace {

/// The number that a variable begins with: "8(x2)" is 8.
std::optional<int> number_in(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text < '0' || *text > '9') return std::nullopt;
  return std::atoi(text);
}

/// The variables in which a launcher gives rank, size and the size on this node.
struct LaunchVariables {
  const char* rank;
  const char* size;
  const char* per_node;
  bool can_launch = true;  ///< whether mpirun can start ranks from a launch of one
};

// Of Slurm's counts, those of a step: a batch script, which is no launch, does not have them.
constexpr LaunchVariables kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", false},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
};

/// What mpirun reads of a host beside its slots.
constexpr const char* kOtherWords[] = {"max_slots", "max-slots", "port", "user", "username"};

int slots_of_line(std::istringstream& words, const std::string& path, int line) {
  std::optional<int> found;
  for (std::string word; words >> word;) {
    try {
      const std::string key = word.substr(0, word.find('='));
      if (word != key && std::ranges::find(kOtherWords, key) != std::end(kOtherWords)) continue;
      if (!word.starts_with("slots=")) {
        const bool lacks_count = word == "slots" || word == "slots=";
        throw_input_error(
            "'{}' is not slots=COUNT{}", word,
            lacks_count ? ", in one word" : suggestion(key, std::vector<std::string>{"slots"}));
      }
      const std::int64_t slots = parse_count("slots", word.substr(6));
      if (slots < 1 || slots > kMaxRunningRanks) {
        throw_input_error("slots {}: at least 1, at most {}", slots, kMaxRunningRanks);
      }
      found = static_cast<int>(slots);
    } catch (const InputError& error) {
      throw_input_error("{}:{}: {}", path, line, error.what());
    }
  }
  return found.value_or(1);
}

}  // namespace

std::optional<int> asked_ranks_per_node() {
  const char* text = std::getenv("LONGCA_RANKS_PER_NODE");
  return asked_ranks_per_node(text == nullptr ? std::string() : text);
}

std::optional<int> asked_ranks_per_node(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const std::int64_t ranks = parse_count("LONGCA_RANKS_PER_NODE", text);
  if (ranks < 1 || ranks > kMaxRunningRanks) {
    throw_input_error("LONGCA_RANKS_PER_NODE is {}: at least 1, at most {}", ranks,
                      kMaxRunningRanks);
  }
  return static_cast<int>(ranks);
}

std::optional<MpiLaunch> find_mpi_launch() {
  for (const LaunchVariables& names : kLaunchers) {
    const auto rank = number_in(names.rank);
    const auto size = number_in(names.size);
    if (!rank || !size) continue;
    if (*size < 2 && names.can_launch) return std::nullopt;
    return MpiLaunch{*rank, *size, number_in(names.per_node).value_or(*size)};
  }
  return std::nullopt;
}

namespace {

/// Calls visit(host, the line's other words, its number) for each line that names a host.
template <typename Visit>
void for_each_host(const std::string& path, const Visit& visit) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
  std::istringstream file(read_input_file("hostfile", path, kMaxBytes));
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string host;
    if (!(words >> host)) continue;
    const auto is_of_names = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
             std::string_view(".-_:@[]").find(c) != std::string_view::npos;
    };
    if (!std::ranges::all_of(host, is_of_names)) {
      throw_input_error("{}:{}: '{}' is no host name", path, number, host.substr(0, 60));
    }
    visit(host, words, number);
  }
}

}  // namespace

HostSlots hostfile_slots(const std::string& path) {
  HostSlots slots;
  for_each_host(path, [&](const std::string&, std::istringstream& words, int number) {
    const int here = slots_of_line(words, path, number);
    if (slots.all == 0) slots.of_first_host = here;
    slots.all += here;
    if (slots.all > kMaxRunningRanks) {
      throw_input_error("hostfile '{}' has {} slots by line {}: more than {}", path, slots.all,
                        number, kMaxRunningRanks);
    }
  });
  if (slots.all == 0) throw_input_error("hostfile '{}' names no host", path);
  return slots;
}

std::vector<std::string> hostfile_hosts(const std::string& path) {
  std::vector<std::string> hosts;
  for_each_host(path, [&](const std::string& host, std::istringstream&, int) {
    if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
  });
  return hosts;
}

}  // namespace longca
