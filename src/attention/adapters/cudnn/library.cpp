#include "attention/adapters/cudnn/library.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

namespace longca {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "libcudnn.so.9";
/// The first that packs the statistics of documents and sums their gradients over grouped heads.
constexpr int kMinVersion = 90600;

/// The file to open.
std::string wanted_file(const std::string& chosen) {
  if (chosen.empty()) return kFile;
  std::error_code error;
  return fs::is_directory(chosen, error) ? (fs::path(chosen) / kFile).string() : chosen;
}

CudnnLibrary refuse(std::string reason) {
  CudnnLibrary library;
  library.support = Support::unavailable(std::move(reason));
  return library;
}

}  // namespace

CudnnLibrary load_cudnn(const std::string& chosen) {
  const std::string file = wanted_file(chosen);
  CudnnLibrary library;
  if (!library.file.open(file)) {
    return refuse(fmt::format(
        "cuDNN cannot be loaded ({}): install cuDNN 9 (NVIDIA's package cudnn9-cuda-13, or pip "
        "install nvidia-cudnn-cu13), or name the folder of {} in LONGCA_CUDNN",
        SharedLibrary::error(), kFile));
  }
  std::size_t (*get_version)() = nullptr;
  if (!library.file.find("cudnnGetVersion", get_version)) {
    return refuse(fmt::format("{} is not cuDNN: {}", file, SharedLibrary::error()));
  }
  library.version = static_cast<int>(get_version());
  library.path = SharedLibrary::file_of(get_version, file);
  if (library.version < kMinVersion) {
    return refuse(fmt::format("{} is cuDNN {}: {} or later is needed", library.path,
                              cudnn_version_text(library.version),
                              cudnn_version_text(kMinVersion)));
  }
  return library;
}

const CudnnLibrary& cudnn_library() {
  static const CudnnLibrary library = [] {
    const char* chosen = std::getenv("LONGCA_CUDNN");
    return load_cudnn(chosen != nullptr ? chosen : "");
  }();
  return library;
}

std::string cudnn_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace longca
