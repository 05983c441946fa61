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
  const ListedTile* listed = nullptr;
  const FullRun* runs = nullptr;
  const RowIntervals* patterns = nullptr;
  const std::int32_t* order = nullptr;
};

struct ForwardParams : AttentionArgs {
  /// O is of float32 and holds, with LSE, the result over other keys: merges into both. Rows that
  /// see no key stay as they are.
  bool accumulate = false;
  DeviceTileLists lists = {};
  /// Two words of device memory, zero before the first launch; every launch leaves them zero. One
  /// launch at a time may use them.
  std::int32_t* work_counter = nullptr;
};

/// Queues the forward pass on a device of compute capability 9.0. lists.pack divides
/// heads_q / heads_k, and where list_heads is not 1, the heads of a pack share a list. Every row of
/// O and LSE that a query tile owns is written. Throws CudaError, or std::invalid_argument with the
/// thing, value and limit.
void launch_forward(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream);

}  // namespace longca::slice
