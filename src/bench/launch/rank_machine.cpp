#include "bench/launch/rank_machine.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <system_error>

#include "core/cuda/cuda_device.h"
#include "core/device.h"
#include "core/thread_pool.h"
#include "parallel/transport/transports.h"

namespace longca {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

/// longca-rank lies beside this program; in a build folder, beside this program's folder.
fs::path rank_program() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& path : {folder / "longca-rank", folder.parent_path() / "rank/longca-rank"}) {
    if (is_program(path)) return path;
  }
  return {};
}

RankMachine look() {
  const char* chosen = std::getenv("LONGCA_MPIRUN");
  const std::string mpirun = chosen != nullptr && *chosen != '\0' ? chosen : "mpirun";
  return {rank_program(), find_program(mpirun), available_cpus(), count_cuda_devices()};
}

}  // namespace

fs::path find_program(const std::string& name) {
  if (name.find('/') != std::string::npos)
    return is_program(name) ? fs::absolute(name) : fs::path();
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (is_program(fs::path(folder) / name)) return fs::path(folder) / name;
  }
  return {};
}

const RankMachine& rank_machine() {
  static const RankMachine machine = look();
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

std::vector<std::string> transport_names() {
  return {"mpi", "nccl", "peer"};
}

Support transport_here(const std::string& name) {
  if (Support built = ranks_are_built(); !built.ok()) return built;
  if (Support here = mpirun_is_here(); !here.ok()) return here;
  if (name == "mpi") return {};
  if (const Support& gpu = Device::available(DeviceKind::cuda); !gpu.ok()) return gpu;
  return name == "nccl" ? nccl_available() : Support{};
}

}  // namespace longca
