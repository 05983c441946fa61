#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "attention/reference/interval_lists.h"
#include "core/dtype.h"
#include "core/tensor.h"

namespace longca {

/// The four passes over pairs of tiles. Each owns tiles of 64 tokens of one side, meets the tiles
/// of the other side that its mask allows, and sums one output.
enum class ReferencePass : std::uint8_t {
  forward,         ///< O and the row statistics; owns queries
  query_gradient,  ///< dQ; owns queries
  value_gradient,  ///< dV; owns keys
  key_gradient,    ///< dK; owns keys
};

/// What the backward passes need of a query row.
struct RowStatistic {
  double lse = 0;        ///< −∞ for a row without keys
  double delta = 0;      ///< dO · O
  float same_lse = 0;    ///< those of the emulation
  float same_delta = 0;  ///< from its rounded O
};

/// What a pass tells of a tile, for its bound (bounds.h) and its zeros.
struct TileFigure {
  double squared = 0;        ///< ‖exact‖²
  double error_squared = 0;  ///< ‖emulation − exact‖²
  double terms = 0;          ///< Σ ‖term‖²
  double largest = 0;        ///< largest |emulation − exact|
  double score = 0;          ///< forward: scale · largest ‖q‖ · largest ‖k‖ met
  std::uint64_t seen = 0;    ///< bit i: token i has an allowed cell
};

/// IntervalLists in device memory.
struct DeviceIntervals {
  const std::int32_t* list_of = nullptr;
  const std::int64_t* list_offsets = nullptr;
  const TokenInterval* intervals = nullptr;
  const std::int64_t* run_offsets = nullptr;
  const PartnerRun* runs = nullptr;
};

/// One pass over some tiles of some heads of the owner's side. Pointers are to device memory.
struct PassArgs {
  ConstTensorView q, k, v, dout;
  float scale = 1;
  int group = 1;                    ///< query heads per KV head
  const int* heads = nullptr;       ///< the owner's heads, by slot
  int slots = 0;                    ///< number of them
  const int* mask_slot = nullptr;   ///< per query head: its part of the interval lists
  const int* query_slot = nullptr;  ///< per query head: its row in `rows`
  DeviceIntervals mask;             ///< of the owner's side
  /// [heads of the interval lists, tiles]: the tiles to compute, in the order in which they begin.
  const std::int32_t* order = nullptr;
  int tiles = 0;                 ///< of each head
  RowStatistic* rows = nullptr;  ///< [query slots, tokens_q]: written by `forward`, else read
  /// ‖row‖² of the inputs, [heads, tokens].
  const float* q_squared = nullptr;
  const float* k_squared = nullptr;
  const float* v_squared = nullptr;
  const float* dout_squared = nullptr;
  float* out = nullptr;           ///< [slots, tokens, dim] float32
  TileFigure* figures = nullptr;  ///< [slots, tiles]
};

/// Runs a pass. Head dimensions up to largest_reference_dim(dtype).
void run_pass(ReferencePass pass, const PassArgs& args, cudaStream_t stream);

/// The statistics of rows whose O and lse a kernel has computed, for the passes over keys: those of
/// the emulation, too. rows[query_slot[head], token] of the `count` query heads of `heads`.
void statistics_of(const ConstTensorView& o, const ConstLseView& lse, const ConstTensorView& dout,
                   const int* heads, int count, const int* query_slot, RowStatistic* rows,
                   cudaStream_t stream);

/// 256 in bfloat16, 128 in float32.
int largest_reference_dim(DType dtype);

/// The most shared memory that a block of any pass takes.
int reference_shared_bytes(DType dtype, int head_dim);

/// squared[head, token] = ‖x[token, head]‖².
void squared_norms(const ConstTensorView& x, float* squared, cudaStream_t stream);

}  // namespace longca
