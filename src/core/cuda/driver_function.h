#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace longca {

/// A function of the driver that the runtime has loaded, by its name; null if it has none of that
/// name. Nothing links libcuda, so that programs start on machines without a driver.
inline void* find_driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  const cudaError_t code =
      cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found);
#else
  const cudaError_t code = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  if (code == cudaSuccess && found == cudaDriverEntryPointSuccess) return function;
  cudaGetLastError();
  return nullptr;
}

}  // namespace longca
