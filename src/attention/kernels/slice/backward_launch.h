#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "attention/kernels/slice/launch.h"
#include "attention/kernels/slice/planner/transposed_lists.h"

namespace longca::slice {

/// TransposedLists in device memory, each array aligned to 16 bytes (as allocations are).
struct DeviceTransposedLists {
  int pack = 1;
  int list_heads = 1;
  int tiles_per_list = 0;
  int items_per_order = 0;
  int shared_tiles = 0;
  int section_heads = 1;
  const KeyTile* tiles = nullptr;
  const QuerySegment* segments = nullptr;
  const std::uint64_t* patterns = nullptr;
  const WorkItem* order = nullptr;
  const KeyRange* shared_keys = nullptr;
  bool counts_visits = false;                   ///< else there are no regions
  const std::int32_t* region_visits = nullptr;  ///< of ⌈query tiles / kRegionTiles⌉
  const std::int32_t* region_order = nullptr;
};

/// What becomes of a gradient.
enum class Sink : std::uint8_t {
  overwrite,          ///< in the inputs' dtype
  overwrite_float32,  ///< in float32
  add_float32,        ///< float32 is added to
};

struct BackwardParams : AttentionArgs, GradientTensors {
  DeviceTransposedLists lists = {};
  Sink dq_sink = Sink::overwrite;
  Sink keys_sink = Sink::overwrite;  ///< of dK and dV
  /// Adds up in the order of the lists, which are ordered ones: the same bits every time.
  bool ordered = false;
  /// Device memory of backward_workspace_bytes, as it may be. One launch at a time may use it.
  void* workspace = nullptr;
  /// Likewise of backward_rows_bytes. From the launch of the rows to that of the rest nobody else
  /// may use it.
  void* rows = nullptr;
};

/// What of a backward pass is queued.
enum class BackwardPart : std::uint8_t {
  all,
  rows,  ///< what dout, o and lse are enough for
  rest,
};

/// Bytes of BackwardParams::workspace and BackwardParams::rows: multiples of 256.
std::int64_t backward_workspace_bytes(const BackwardParams& params, int head_dim);
std::int64_t backward_rows_bytes(const BackwardParams& params, int head_dim);

/// Queues the backward pass on a device of compute capability 9.0 (generic/launch.h has the one for
/// others). lists.pack divides
/// heads_q / heads_k, and where list_heads is not 1, the heads of a pack share a list. Every row of
/// dQ, dK and dV is written. Throws CudaError, or std::invalid_argument with the thing, value and
/// limit.
/// The rest comes behind the rows of equal params on the same stream, whatever is between them.
void launch_backward(const BackwardParams& params, DType dtype, int head_dim, BackwardPart part,
                     cudaStream_t stream);

}  // namespace longca::slice
