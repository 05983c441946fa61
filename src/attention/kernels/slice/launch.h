#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "attention/api/problem.h"
#include "attention/kernels/common/attention_args.h"
#include "attention/kernels/common/softcap.h"
#include "attention/kernels/slice/planner/tile_lists.h"
#include "attention/kernels/slice/planner/tile_starts.h"
#include "attention/kernels/slice/planner/transposed_lists.h"
#include "core/dtype.h"

// What slice's kernels are launched with. The launch functions without `sm80` are for devices of
// compute capability 9.0, the others for any from 8.0 on; all throw CudaError, or InternalError for
// calls that SliceKernel::supports refuses.
namespace longca::slice {

/// Throws InternalError: this build has no `what` ("forward kernel") for these.
[[noreturn]] void throw_no_instance(const char* what, DType dtype, const DimPair& dims);

/// TileLists in device memory, which says what the fields are. Each array is aligned to 16 bytes
/// (as allocations are): kernels read entries as int4 and by TMA.
///
/// The tiles of a list come in its `order`, so that the first one of a CTA, which no cache has yet,
/// takes one read less.
struct DeviceTileLists {
  int pack = 1;
  bool row_pairs = false;
  /// Whether query tiles have so many full tiles that ForwardShape::kUnchecked pays, or joints,
  /// which it alone can read.
  bool unchecked = false;
  /// Whether row groups see different key tiles in turn (TileLists::in_turn), and so many that
  /// ForwardShape::kInTurn pays.
  bool in_turn = false;
  int list_heads = 1;
  int tiles_per_list = 0;
  const QueryTile* tiles = nullptr;
  const PartialTile* partial = nullptr;
  const TileJoints* joints = nullptr;  ///< nullptr without joints
  const FullRun* runs = nullptr;
  const RowIntervals* patterns = nullptr;
  /// Of static masks of at most kMaxTileStarts: the same tiles, in the same order; else nullptr.
  const TileStart* starts = nullptr;
};

struct ForwardParams : AttentionArgs {
  Softcap softcap = {};
  const float* sink = nullptr;  ///< ForwardArgs::sink
  /// Merges into O, which is float32 then, and LSE: they hold the result over other keys. Rows that
  /// see neither key nor sink are left as they are.
  bool accumulate = false;
  /// ForwardArgs::earlier; not with `accumulate`, nor of the sm80 kernels.
  EarlierArg earlier = {};
  DeviceTileLists lists = {};
  /// KV heads in work at a time, so that their K and V stay in L2: a divisor of heads_k.
  int section_heads = 1;
  /// [2] in device memory: work tiles taken besides the first of each taker (a cluster of CTAs, or
  /// a stream of one), takers that have ended. Zero before the first launch and after every one.
  /// One launch at a time may use it.
  std::int32_t* work_counter = nullptr;
};

/// Launch the forward pass. lists.pack divides heads_q / heads_k, and where list_heads is not 1,
/// the heads of a pack share a list. Every row of O and LSE that a query tile contains is written.
/// The sm80 one uses no work counter; its `dtype` and `head_dim` are among those that the program
/// was built with.
void launch_forward(const ForwardParams& params, DType dtype, const DimPair& dims,
                    cudaStream_t stream);
void launch_sm80_forward(const ForwardParams& params, DType dtype, int head_dim,
                         cudaStream_t stream);

/// TransposedLists in device memory, likewise.
struct DeviceTransposedLists {
  int pack = 1;
  int list_heads = 1;
  int tiles_per_list = 0;
  int items_per_order = 0;
  int split_tiles = 0;  ///< size of split_keys
  int section_heads = 1;
  const KeyTile* tiles = nullptr;
  const QuerySegment* segments = nullptr;
  const std::uint64_t* patterns = nullptr;
  const WorkItem* order = nullptr;
  const std::int32_t* prior_parts = nullptr;
  const KeyRange* split_keys = nullptr;
  bool tells_halves = false;
  bool counts_visits = false;                   ///< whether there are regions
  const std::int32_t* region_visits = nullptr;  ///< [⌈query tiles / kRegionTiles⌉]
  const std::int32_t* region_order = nullptr;   ///< likewise
};

/// How a gradient is written, and so its dtype.
enum class StoreMode : std::uint8_t {
  overwrite,  ///< in the inputs' dtype
  overwrite_float32,
  add_float32,  ///< adds into float32
};

/// Rows and query heads of dQ that are added to, in the inputs' dtype; not of the sm80 kernels.
struct HeldRows {
  int row_begin = 0, row_end = 0;
  int head_begin = 0, head_end = 0;
};

struct BackwardParams : AttentionArgs, GradientTensors {
  Softcap softcap = {};
  const float* sink = nullptr;  ///< BackwardArgs::sink
  float* dsink = nullptr;       ///< likewise; added to if dq_mode is add_float32
  DeviceTransposedLists lists = {};
  StoreMode dq_mode = StoreMode::overwrite;
  HeldRows held = {};                         ///< of `overwrite`: BackwardArgs::held
  StoreMode dkv_mode = StoreMode::overwrite;  ///< of dK and dV
  /// Deterministic: adds gradients in the order of the lists, which are made for that
  /// (BackwardWork::ordered).
  bool ordered = false;
  /// backward_workspace_bytes of device memory, not initialized: dQ's float32 accumulators. One
  /// launch at a time may use it.
  void* workspace = nullptr;
  /// Likewise backward_rows_bytes: row terms, and what is cleared with them. In use from
  /// BackwardPart::rows until BackwardPart::rest has run.
  void* rows = nullptr;
};

/// Which kernels of a backward pass are launched.
enum class BackwardPart : std::uint8_t {
  all,
  rows,  ///< preprocess_kernel, which needs dout, o and lse only
  rest,  ///< the others
};

/// Bytes of BackwardParams::workspace and BackwardParams::rows: multiples of 256.
std::int64_t backward_workspace_bytes(const BackwardParams& params, DType dtype,
                                      const DimPair& dims);
std::int64_t backward_rows_bytes(const BackwardParams& params, DType dtype, const DimPair& dims);

/// Launches the backward pass. lists.pack divides heads_q / heads_k, and where list_heads is not 1,
/// the heads of a pack share a list. Every row of dQ, dK and dV is written. BackwardPart::rest
/// follows BackwardPart::rows of equal params on the same stream; other work may be between them.
void launch_backward(const BackwardParams& params, DType dtype, const DimPair& dims,
                     BackwardPart part, cudaStream_t stream);

/// The same over lists of packs of one head, all in one part. `dtype` and `head_dim` are among
/// those that the program was built with. `shared_bytes` is the maximum of the device per CTA: with
/// more, CTAs are larger and faster. The workspace has sm80_workspace_bytes; the store modes are
/// `overwrite` or `add_float32`.
void launch_sm80_backward(const BackwardParams& params, DType dtype, int head_dim, int shared_bytes,
                          cudaStream_t stream);
std::int64_t sm80_workspace_bytes(const BackwardParams& params, int head_dim);

/// Minimum shared memory per CTA of the sm80 passes, at the largest head dimension.
int sm80_forward_shared_bytes();
int sm80_backward_shared_bytes();

}  // namespace longca::slice
