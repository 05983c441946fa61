#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "attention/kernels/common/attention_args.h"
#include "attention/kernels/slice/planner/tile_lists.h"
#include "core/dtype.h"

namespace longca::slice {

/// TileLists in device memory, each array aligned to 16 bytes (as allocations are).
struct DeviceTileLists {
  int pack = 1;
  int list_heads = 1;
  int tiles_per_list = 0;
  const QueryTile* tiles = nullptr;
  const PartialTile* partial = nullptr;
  const FullRun* runs = nullptr;
  const RowIntervals* patterns = nullptr;
  const std::int32_t* order = nullptr;
};

struct ForwardParams : AttentionArgs {
  /// Merges into O, which is float32 then, and LSE: they hold the result over other keys. Rows that
  /// see no key are left as they are.
  bool accumulate = false;
  DeviceTileLists lists = {};
  /// [2] in device memory, zero before the first launch and after every one. One launch at a time
  /// may use it.
  std::int32_t* work_counter = nullptr;
};

/// Launches the forward pass on a device of compute capability 9.0 (sm80/launch.h has the one for
/// others). lists.pack divides heads_q / heads_k, and where list_heads is not 1, the heads of a pack
/// share a list. Every row of O and LSE that a query tile contains is written. Throws CudaError, or
/// std::invalid_argument with the thing, value and limit.
void launch_forward(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream);

}  // namespace longca::slice
