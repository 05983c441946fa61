#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "core/shared_library.h"

namespace longca::nccl {

// What is used of NCCL's binary interface, which is the same since 2.13, as nccl.h declares it: so
// that every build with CUDA has the transport (tests/gpu/parallel compares the two).

struct UniqueId {
  char internal[128];
};
struct OpaqueComm;
using Comm = OpaqueComm*;
using Result = int;
constexpr Result kSuccess = 0;
constexpr int kInt8 = 0;
constexpr int kFloat32 = 7;
constexpr int kSum = 0;

/// The functions of the loaded library.
struct Functions {
  Result (*get_unique_id)(UniqueId*) = nullptr;
  Result (*init_rank)(Comm*, int ranks, UniqueId, int rank) = nullptr;
  Result (*destroy)(Comm) = nullptr;
  Result (*abort)(Comm) = nullptr;
  Result (*group_start)() = nullptr;
  Result (*group_end)() = nullptr;
  Result (*send)(const void*, std::size_t, int type, int peer, Comm, cudaStream_t) = nullptr;
  Result (*receive)(void*, std::size_t, int type, int peer, Comm, cudaStream_t) = nullptr;
  Result (*all_reduce)(const void*, void*, std::size_t, int type, int op, Comm,
                       cudaStream_t) = nullptr;
  const char* (*error_string)(Result) = nullptr;
  const char* (*last_error)(Comm) = nullptr;

  /// False if the library lacks one of them.
  bool load(const SharedLibrary& library) {
    return library.find("ncclGetUniqueId", get_unique_id) &&
           library.find("ncclCommInitRank", init_rank) &&
           library.find("ncclCommDestroy", destroy) && library.find("ncclCommAbort", abort) &&
           library.find("ncclGroupStart", group_start) && library.find("ncclGroupEnd", group_end) &&
           library.find("ncclSend", send) && library.find("ncclRecv", receive) &&
           library.find("ncclAllReduce", all_reduce) &&
           library.find("ncclGetErrorString", error_string) &&
           library.find("ncclGetLastError", last_error);
  }
};

}  // namespace longca::nccl
