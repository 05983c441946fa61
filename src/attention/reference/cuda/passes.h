#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "attention/reference/bounds.h"
#include "attention/reference/interval_lists.h"
#include "core/dtype.h"
#include "core/tensor.h"

namespace longca {

/// The four passes over pairs of 64-token tiles: a CTA owns a tile of one side, loops over the
/// non-empty tiles of the other side, its partners, and accumulates one output.
enum class ReferencePass : std::uint8_t {
  forward,         ///< O and the row statistics; owns queries
  query_gradient,  ///< dQ; owns queries
  value_gradient,  ///< dV; owns keys
  key_gradient,    ///< dK; owns keys
};

/// Statistics of a query row for the backward passes.
struct RowStatistic {
  double lse = 0;             ///< −∞ for a row without keys and sink
  double delta = 0;           ///< dO · O
  float same_lse = 0;         ///< the emulation's lse
  float same_delta = 0;       ///< the emulation's, from its rounded O
  float delta_magnitude = 0;  ///< RowStatistics::delta_magnitude
};

/// A pass's statistics of an owned tile, for its bound (bounds.h) and its zero rows.
struct TileStatistics {
  double squared = 0;        ///< ‖exact‖²
  double error_squared = 0;  ///< ‖emulation − exact‖²
  TileTerms terms;
  double largest = 0;      ///< max |emulation − exact|
  double score = 0;        ///< forward: ForwardMagnitudes::score
  std::uint64_t seen = 0;  ///< bit i: token i has an allowed cell
};

/// IntervalLists in device memory.
struct DeviceIntervals {
  const std::int32_t* list_of = nullptr;
  const std::int64_t* list_offsets = nullptr;
  const TokenInterval* intervals = nullptr;
  const std::int64_t* run_offsets = nullptr;
  const PartnerRun* runs = nullptr;
};

/// The arguments of a pass over some tiles of some heads of the owner's side; device pointers. A
/// A head's index is its place among those computed.
struct PassArgs {
  ConstTensorView q, k, v, dout;
  float scale = 1;
  float softcap = 0;                 ///< Problem::softcap
  const float* sink = nullptr;       ///< [query heads of the problem], if it has sinks
  int group = 1;                     ///< query heads per KV head
  const int* heads = nullptr;        ///< the owner's heads, by index
  int head_count = 0;                ///< number of heads
  const int* mask_index = nullptr;   ///< per query head: head index in the interval lists
  const int* query_index = nullptr;  ///< per query head: head index in `rows`
  DeviceIntervals mask;              ///< of the owner's side
  /// [heads of the interval lists, tiles]: the tiles to compute, in launch order.
  const std::int32_t* order = nullptr;
  int tiles = 0;                 ///< of each head
  RowStatistic* rows = nullptr;  ///< [query heads, tokens_q]: written by `forward`, else read
  /// ‖row‖² of the inputs, [heads, tokens].
  const float* q_squared = nullptr;
  const float* k_squared = nullptr;
  const float* v_squared = nullptr;
  const float* dout_squared = nullptr;
  float* out = nullptr;                  ///< [head_count, tokens, dim of the output] float32
  TileStatistics* statistics = nullptr;  ///< [head_count, tiles]
};

/// Runs a pass for a head dimension up to largest_reference_dim(dtype), and one of v up to it.
void run_pass(ReferencePass pass, const PassArgs& args, cudaStream_t stream);

/// Writes rows[query_index[head], token], the emulation's members too, from a kernel's O and lse
/// for the `count` query heads `heads`.
void statistics_of(const ConstTensorView& o, const ConstLseView& lse, const ConstTensorView& dout,
                   const int* heads, int count, const int* query_index, RowStatistic* rows,
                   cudaStream_t stream);

/// 256 in bfloat16 and float16, 128 in float32.
int largest_reference_dim(DType dtype);

/// Maximum bytes of shared memory per CTA over all passes.
int reference_shared_bytes(DType dtype, int head_dim);

/// squared[head, token] = ‖x[token, head]‖².
void squared_norms(const ConstTensorView& x, float* squared, cudaStream_t stream);

}  // namespace longca
