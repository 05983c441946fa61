#pragma once

#include <cublas_v2.h>

#include <string>

#include "core/status.h"

namespace longca::naive {

/// cuBLAS, loaded when it is first used: linked, it would add 70 ms and 200 MB to every start of
/// the program.
struct CublasLibrary {
  Support support;  ///< ok, or `unavailable` and what to install; the pointers are then null
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&cublasGemmStridedBatchedEx_64) gemm_strided_batched_ex = nullptr;
  decltype(&cublasGetStatusString) status_string = nullptr;
  decltype(&cublasGetProperty) property = nullptr;
};

/// The cuBLAS of the toolkit that the program was built with. Never throws.
const CublasLibrary& cublas_library();

/// "13.1.0"; empty if it cannot be loaded.
std::string cublas_version();

}  // namespace longca::naive
