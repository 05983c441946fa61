#pragma once

#include <cuda.h>

#include <cstdint>

#include "attention/kernels/slice/launch.h"
#include "attention/kernels/slice/planner/transposed_lists.h"
#include "core/rounding.h"

namespace longca::slice::sm90 {

/// What preprocess_kernel computes of the 64 rows of a query tile.
struct RowTerms {
  float lse_log2[kBackwardRows];  ///< LSE · log2 e; +∞ for rows that see nothing or do not exist
  float delta[kBackwardRows];     ///< rowsum(dO ∘ O)
};

/// States of a query tile's dQ accumulator (dq_semaphores), unless additions are ordered. The first
/// CTA to come stores instead of adding, so that nobody has to zero the accumulator; others wait
/// until that store is complete, and then add in any order.
inline constexpr std::int32_t kDqEmpty = 0;
inline constexpr std::int32_t kDqStoring = 1;
inline constexpr std::int32_t kDqStored = 2;

/// Semaphores of a split key tile, one for the share of dK and dV that a warp adds: 0 to 7 of the
/// warps that compute dV, or both; if kNarrow, 8 to 15 of those that compute dK.
inline constexpr int kDkvSemaphores = 16;

/// Tensor maps cover [tokens, heads, dim], with boxes 64 elements wide.
struct BackwardKernelArgs {
  CUtensorMap q, dout;  ///< box: 64 / P tokens × P heads, 64 rows
  CUtensorMap k, v;     ///< box: kKeys keys × 1 head
  BackwardParams params;
  int dim;            ///< of q and k, at most kDim; beyond it TMA gives zeros
  int value_dim;      ///< of v and o, at most kValueDim, likewise
  int pack_shift;     ///< log2 P
  int q_tiles;        ///< query tiles of one head block
  int head_blocks;    ///< head blocks of a KV head, P query heads each
  int section_heads;  ///< KV heads in work at a time: their rows stay in L2
  int query_tiles;    ///< query tiles of all head blocks
  int work_items;     ///< of all KV heads
  RowTerms* terms;    ///< [query_tiles]
  /// Float32 accumulators keep the layout of wgmma's accumulator registers: register i of lane l of
  /// a warp is float i / 4 · 128 + 4 l + i % 4 of the warp's part, and holds row
  /// l / 4 + 8 (i / 2 % 2), column 8 (i / 4) + 2 (l % 4) + i % 2 of the warp's 16 rows. A query
  /// tile has parts of kDqColumns columns (BackwardShape), each of rows 0, 16, 32 and 48.
  float* dq_accum;   ///< [query_tiles, 64 · kDim]
  float* dkv_accum;  ///< split key tiles: [heads_k, lists.split_tiles, dK and dV, parts of 16 keys]
  /// [query_tiles, kDqParts]: additions done, if ordered; else kDqEmpty, kDqStoring or
  /// kDqStored.
  std::int32_t* dq_semaphores;
  /// [heads_k, split key tiles, kDkvSemaphores], if ordered: items that have added a warp's share
  /// of dK or dV of the key tile.
  std::int32_t* dkv_semaphores;
  /// [⌈query_tiles / kRegionTiles⌉], if lists.counts_visits: visits of each region whose additions
  /// to dQ are complete.
  std::int32_t* visits;
  std::int64_t dkv_accum_bytes;
  int dkv_semaphore_count;  ///< of all key tiles
  /// Key tiles per KV head that have dkv_accum: lists.split_tiles, or none where all dK and dV are
  /// added to given float32.
  int dkv_accum_tiles;
  std::int32_t* work_counter;   ///< next work item of backward_kernel
  std::int32_t* write_counter;  ///< next tile that postprocess_kernel writes
};

/// A query tile in a stage, as the producer passes it to the consumers.
struct RowTile {
  int index;       ///< head block · q_tiles + query tile
  int pattern;     ///< QuerySegment::pattern
  int prior_adds;  ///< QuerySegment::prior_adds
};

/// The key tile that a CTA computes next.
struct KeyTileWork {
  int k_begin, k_end;
  int kv_head;
  int q_tiles;      ///< to visit; 0: dK = dV = 0, and K and V are not loaded; < 0 ends the kernel
  int split;        ///< WorkItem::split
  int prior_parts;  ///< TransposedLists::prior_parts
};

/// What preprocess_kernel and postprocess_kernel know of a shape.
template <typename Dims>
struct GradientShape {
  static constexpr int kDim = Dims::kDim;            ///< of Q, K, dQ, dK
  static constexpr int kValueDim = Dims::kValueDim;  ///< of V, O, dO, dV
  /// Above 128 dimensions neither shared memory nor registers hold what the others do
  /// (BackwardWideConsumer).
  static constexpr bool kWide = kDim > 128;
  /// Columns of a part of dQ's accumulator, which a warpgroup computes; at 96 dimensions 64, and
  /// the rest, as operands begin at a multiple of 64. If kWide, part g has columns 64 g … 64 g + 63
  /// and as many of those from 128 on: kMoreDqColumns.
  static constexpr int kDqColumns = kDim == 96 ? 64 : kDim / 2;
  static constexpr int kLastDqColumns = kDim - kDqColumns;
  static constexpr int kMoreDqColumns = kWide ? kDqColumns - 64 : 0;
  /// Floats of an accumulator before those of warp `index`: 16 rows of its part each, 0 to 3 of the
  /// first part, 4 to 7 of the other one.
  __device__ __forceinline__ static constexpr int dq_begin(int index) {
    if constexpr (kDqColumns == kLastDqColumns) return index * (16 * kDqColumns);
    return index < 4 ? index * (16 * kDqColumns)
                     : 4 * (16 * kDqColumns) + (index - 4) * (16 * kLastDqColumns);
  }
  /// Threads of preprocess_kernel per row.
  static constexpr int kRowLanes = ceil_div(kValueDim, 64) * 8;
  /// Parts of an accumulator with a semaphore of their own, as they are added separately.
  static constexpr int kDqParts = kWide ? 2 : 1;
  static constexpr int kKeys = backward_tile_keys({kDim, kValueDim});  ///< of a key tile
};

/// A CTA has three warpgroups: one of a producer warp and a warp per dQ buffer, two of consumers.
/// These have 64 keys each or, where a key tile has but 64, half of the dimensions each. If kNarrow
/// it has four: two of consumers compute scores of 64 keys each, the third one dK and dQ of all.
template <typename Element, typename Dims, bool kCapped_ = false, bool kHalves_ = false>
struct BackwardShape : GradientShape<Dims> {
  using T = Element;
  using Base = GradientShape<Dims>;
  using Base::kDim, Base::kDqColumns, Base::kKeys, Base::kValueDim, Base::kWide;
  static constexpr bool kCapped = kCapped_;  ///< with a softcap
  /// Lists tell which query tiles see one half of the keys: its warpgroup alone computes these.
  static constexpr bool kHalves = kHalves_;
  /// Warpgroups have roles: BackwardScoreConsumer and BackwardGradientConsumer.
  static constexpr bool kNarrow = kDim == 64;
  /// Stages of Q and, below, of dO: as many as shared memory holds.
  static constexpr int kStages = kNarrow ? 4 : kValueDim > 128 ? 1 : 2;
  static constexpr int kDoutStages = kNarrow ? kStages : kWide ? 1 : 2;
  /// Whether dO arrives together with Q: one wait less. Else K Qᵀ starts before it has arrived.
  static constexpr bool kRowsTogether = !kWide;
  /// Whether q_empty says that dO has been read, too.
  static constexpr bool kRowsEmptyTogether = kRowsTogether && !kNarrow;
  static constexpr int kKeyStages = kNarrow ? 2 : 1;  ///< of K and V
  /// One, as shared memory is used up; if kNarrow one per stage of Q.
  static constexpr int kPatternStages = kNarrow ? kStages : 1;
  static constexpr int kDsStages = 2;
  static constexpr int kThreads = kNarrow ? 512 : 384;
  /// One is filled while others are added to device memory or wait for their semaphore. If kWide
  /// each warpgroup has its own.
  static constexpr int kDqBuffers = kNarrow ? 3 : 2;
  static constexpr int kScoreWarps = 8;                      ///< that compute P and dS
  static constexpr int kGradientWarps = kNarrow ? 4 : 8;     ///< that compute dK and dQ
  static constexpr int kConsumerWarps = kNarrow ? 12 : 8;    ///< all of these
  static constexpr int kDqWarps = kWide || kNarrow ? 4 : 8;  ///< that write to a buffer
  static constexpr int kDqBufferParts = kWide ? 4 : 8;       ///< of 16 rows × kDqColumns each
  /// Tiles are columns of 64 elements, 128-byte swizzled.
  static constexpr int kColumns = ceil_div(kDim, 64);
  static constexpr int kValueColumns = ceil_div(kValueDim, 64);
  static constexpr int kKeyColumnBytes = kKeys * 128;
  static constexpr int kRowColumnBytes = kBackwardRows * 128;
  static constexpr int kKeyBytes = kColumns * kKeyColumnBytes;
  static constexpr int kValueBytes = kValueColumns * kKeyColumnBytes;
  static constexpr int kRowBytes = kColumns * kRowColumnBytes;
  static constexpr int kDoutBytes = kValueColumns * kRowColumnBytes;
  static constexpr int kTermBytes = 2 * kBackwardRows * static_cast<int>(sizeof(float));
  static constexpr int kPatternBytes = kKeys * static_cast<int>(sizeof(std::uint64_t));

  /// For each barrier: who arrives, how often per phase. "Consumers": lane 0 of each consumer warp;
  /// "score" and "gradient warps": of those, kScoreWarps and kGradientWarps, all unless kNarrow.
  /// Full barriers of loads also count TMA's bytes; parities are those of PipelineState.
  struct Shared {
    alignas(1024) unsigned char k[kKeyStages][kKeyBytes];  ///< [kKeys, kDim]
    /// [kKeys, kValueDim]; dV and dK leave here, if kNarrow only dV, and dK leaves through k.
    alignas(1024) unsigned char v[kKeyStages][kValueBytes];
    alignas(1024) unsigned char q[kStages][kRowBytes];          ///< stages of [64, kDim]
    alignas(1024) unsigned char dout[kDoutStages][kDoutBytes];  ///< stages of [64, kValueDim]
    alignas(1024) unsigned char ds[kDsStages][kKeys * 128];  ///< dSᵀ: stages of [kKeys, 64 rows]
    /// Parts as in BackwardKernelArgs::dq_accum.
    alignas(128) float dq[kDqBuffers][kDqBufferParts][16 * kDqColumns];
    alignas(128) float terms[kStages][2][kBackwardRows];  ///< RowTerms
    alignas(128) std::uint64_t pattern[kPatternStages][kKeys];
    RowTile tile[kStages];
    RowTile dq_tile[kDqBuffers];  ///< of the dQ in the buffer; index < 0 ends the warp
    KeyTileWork work[kKeyStages];
    /// Guard k, v and work. Full: once, the producer. Empty: consumers, once dK and dV are written.
    std::uint64_t keys_full[kKeyStages], keys_empty[kKeyStages];
    /// Guard q, terms and tile; full also waits for the pattern and, if kRowsTogether, for dO.
    /// Full: once, the producer. Empty: gradient warps, once their wgmma has read Q and, if
    /// kRowsEmptyTogether, dO. Its other operand, dSᵀ, depends on all else that the stage has.
    std::uint64_t q_full[kStages], q_empty[kStages];
    /// Guard dout. Full, unless kRowsTogether: once, the producer. Empty, unless
    /// kRowsEmptyTogether: score warps, once their wgmma has read dO.
    std::uint64_t dout_full[kDoutStages], dout_empty[kDoutStages];
    /// Guards a pattern of one stage, which q_full of its tile says to have arrived. Consumers, in
    /// tiles with a pattern only: the producer counts its phases apart.
    std::uint64_t pattern_empty;
    /// Guard ds. Full: score warps, each with 16 keys of dSᵀ. Empty: gradient warps, once their
    /// wgmma has read all keys.
    std::uint64_t ds_full[kDsStages], ds_empty[kDsStages];
    /// Guard dq and dq_tile. Full: the consumers that write to the buffer. Empty: once,
    /// the thread of the buffer, after TMA has read it.
    std::uint64_t dq_full[kDqBuffers], dq_empty[kDqBuffers];
  };

  /// Where warp `index` (dq_begin) stores its part of dQ.
  __device__ __forceinline__ static float* dq_of_warp(Shared& shared, int buffer, int index) {
    if constexpr (kDqColumns == Base::kLastDqColumns) return shared.dq[buffer][index];
    return shared.dq[buffer][0] + Base::dq_begin(index);
  }
};

/// Named barriers of the backward kernel; id 0 is __syncthreads.
enum class BackwardBarrier : int {
  epilogue_wg1 = 1,  ///< the 128 threads of a consumer warpgroup
  epilogue_wg2 = 2,
  epilogue_wg3 = 3,
  half_wg1 = 4,  ///< likewise, of one that computes a query tile on its own
  half_wg2 = 5,
};

}  // namespace longca::slice::sm90
