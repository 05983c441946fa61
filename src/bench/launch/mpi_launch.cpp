#include "bench/launch/mpi_launch.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/error.h"
#include "core/parse.h"

namespace longca {
namespace {

/// The number that a variable begins with: "8(x2)" is 8.
std::optional<int> number_in(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text < '0' || *text > '9') return std::nullopt;
  return std::atoi(text);
}

/// One way in which a launcher says rank, size and the size on this node.
struct Words {
  const char* rank;
  const char* size;
  const char* per_node;
};

// srun's own counts are those of the step: in a batch script, which is no launch, they are absent.
constexpr Words kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
};

int slots_of_line(std::istringstream& words, const std::string& path, int line) {
  for (std::string word; words >> word;) {
    if (!word.starts_with("slots=")) continue;
    try {
      return static_cast<int>(parse_count("slots", word.substr(6)));
    } catch (const InputError& error) {
      throw_input_error("{}:{}: {}", path, line, error.what());
    }
  }
  return 1;
}

}  // namespace

std::optional<MpiLaunch> find_mpi_launch() {
  for (const Words& words : kLaunchers) {
    const auto rank = number_in(words.rank);
    const auto size = number_in(words.size);
    if (!rank || !size) continue;
    if (*size < 2) return std::nullopt;
    return MpiLaunch{*rank, *size, number_in(words.per_node).value_or(*size)};
  }
  return std::nullopt;
}

HostSlots hostfile_slots(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw_input_error("hostfile '{}' cannot be read: {}", path, std::strerror(errno));
  HostSlots slots;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string host;
    if (!(words >> host)) continue;
    const int here = slots_of_line(words, path, number);
    if (slots.all == 0) slots.of_first_host = here;
    slots.all += here;
  }
  if (slots.all == 0) throw_input_error("hostfile '{}' names no host", path);
  return slots;
}

}  // namespace longca
