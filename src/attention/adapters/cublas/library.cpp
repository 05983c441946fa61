#include "attention/adapters/cublas/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace longca::naive {
namespace {

/// Makes `function` point to the symbol; false if there is none.
template <typename Function>
bool resolve(void* handle, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, symbol));
  return function != nullptr;
}

bool resolve_all(void* handle, CublasLibrary& library) {
  return resolve(handle, "cublasCreate_v2", library.create) &&
         resolve(handle, "cublasSetStream_v2", library.set_stream) &&
         resolve(handle, "cublasSetWorkspace_v2", library.set_workspace) &&
         resolve(handle, "cublasGemmStridedBatchedEx_64", library.gemm_strided_batched_ex) &&
         resolve(handle, "cublasGetStatusString", library.status_string) &&
         resolve(handle, "cublasGetProperty", library.property);
}

CublasLibrary load() {
  CublasLibrary library;
  const std::string file = fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR);
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr || !resolve_all(handle, library)) {
    library.support = Support::unavailable(
        fmt::format("cuBLAS cannot be loaded ({}): install the CUDA toolkit's libcublas, or name "
                    "the folder of {} in LD_LIBRARY_PATH",
                    dlerror(), file));
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
