#include "parallel/transport/nccl/nccl_library.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

namespace longca {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "libnccl.so.2";
/// The first version with ncclGetLastError.
constexpr int kMinVersion = 21300;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// Where pip puts NCCL in the environment whose programs are in the folder `bin`.
void add_wheel_files(const fs::path& bin, std::vector<std::string>& files) {
  std::error_code error;
  for (const auto& python : fs::directory_iterator(bin.parent_path() / "lib", error)) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const fs::path file = python.path() / packages / "nvidia/nccl/lib" / kFile;
      if (fs::exists(file, error)) files.push_back(file.string());
    }
  }
}

/// Folders of the Pythons that $LONGCA_PYTHON and PATH name.
std::vector<fs::path> python_folders() {
  std::vector<fs::path> folders;
  if (const fs::path python = environment("LONGCA_PYTHON"); python.has_parent_path()) {
    folders.push_back(python.parent_path());
  }
  std::istringstream path(environment("PATH"));
  for (std::string folder; std::getline(path, folder, ':');) {
    std::error_code error;
    if (fs::exists(fs::path(folder) / "python3", error)) folders.emplace_back(folder);
  }
  return folders;
}

std::vector<std::string> candidates() {
  std::error_code error;
  if (const fs::path chosen = environment("LONGCA_NCCL"); !chosen.empty()) {
    return {fs::is_directory(chosen, error) ? (chosen / kFile).string() : chosen.string()};
  }
  std::vector<std::string> files = {kFile};
  for (const char* folder : {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"}) {
    const fs::path file = fs::path(folder) / kFile;
    if (fs::exists(file, error)) files.push_back(file.string());
  }
  for (const fs::path& folder : python_folders()) add_wheel_files(folder, files);
  return files;
}

Support refuse(const std::string& problem) {
  return Support::unavailable(
      fmt::format("{}: install NCCL 2.13 or later (NVIDIA's package libnccl2, or pip install "
                  "nvidia-nccl-cu13), or name the folder of {} in LONGCA_NCCL",
                  problem, kFile));
}

NcclLibrary load() {
  NcclLibrary library;
  std::string first_error;
  for (const std::string& file : candidates()) {
    if (library.file.open(file)) break;
    if (first_error.empty()) first_error = SharedLibrary::error();
  }
  if (!library.file.is_open()) {
    library.support = refuse(fmt::format("NCCL cannot be loaded ({})", first_error));
    return library;
  }
  int (*get_version)(int*) = nullptr;
  if (library.file.find("ncclGetVersion", get_version)) get_version(&library.version);
  library.path = SharedLibrary::file_of(get_version, kFile);
  if (library.version < kMinVersion) {
    library.support =
        refuse(fmt::format("{} is NCCL {}", library.path, nccl_version_text(library.version)));
  }
  return library;
}

}  // namespace

const NcclLibrary& nccl_library() {
  static const NcclLibrary library = load();
  return library;
}

std::string nccl_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace longca
