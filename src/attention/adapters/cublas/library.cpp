#include "attention/adapters/cublas/library.h"

#include <fmt/format.h>

#include "core/shared_library.h"

namespace longca::naive {
namespace {

bool find_all(const SharedLibrary& cublas, CublasLibrary& library) {
  return cublas.find("cublasCreate_v2", library.create) &&
         cublas.find("cublasSetStream_v2", library.set_stream) &&
         cublas.find("cublasSetWorkspace_v2", library.set_workspace) &&
         cublas.find("cublasGemmStridedBatchedEx_64", library.gemm_strided_batched_ex) &&
         cublas.find("cublasGetStatusString", library.status_string) &&
         cublas.find("cublasGetProperty", library.property);
}

CublasLibrary load() {
  CublasLibrary library;
  const std::string file = fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR);
  SharedLibrary cublas;
  if (!cublas.open(file) || !find_all(cublas, library)) {
    library.support = Support::unavailable(
        fmt::format("cuBLAS cannot be loaded ({}): install the CUDA toolkit's libcublas, or name "
                    "the folder of {} in LD_LIBRARY_PATH",
                    SharedLibrary::error(), file));
  }
  return library;
}

}  // namespace

const CublasLibrary& cublas_library() {
  static const CublasLibrary library = load();
  return library;
}

std::string cublas_version() {
  const CublasLibrary& library = cublas_library();
  if (!library.support.ok()) return "";
  int major = 0;
  int minor = 0;
  int patch = 0;
  library.property(MAJOR_VERSION, &major);
  library.property(MINOR_VERSION, &minor);
  library.property(PATCH_LEVEL, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace longca::naive
