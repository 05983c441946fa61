#pragma once

#include <cstdint>

#include "attention/kernels/slice/planner/transposed_lists.h"

namespace longca::slice::sm90 {

/// A query tile on its way, as the producer tells the consumers.
struct RowTile {
  int index;    ///< among those of all head blocks: head block · q_tiles + query tile
  int pattern;  ///< TransposedLists, or below 0: everything is seen
  int rank;     ///< QuerySegment
};

/// The keys that a CTA owns next.
struct KeyWork {
  int k_begin, k_end;
  int kv_head;
  int q_tiles;  ///< below 0: nothing, the kernel is over
  int shared;   ///< KeyTile
};

template <typename Element, int kDim_>
struct BackwardShape {
  using T = Element;
  static constexpr int kDim = kDim_;
  static constexpr int kStages = 2;
  static constexpr int kThreads = 384;
  /// dQ is added, or waits for its turn, in one while the next one is filled.
  static constexpr int kDqBuffers = 2;
  static constexpr int kConsumerWarps = 8;
  /// Tiles lie in shared memory as columns of 64 elements.
  static constexpr int kColumns = kDim / 64;
  static constexpr int kKeyColumnBytes = kTileKeys * 128;
  static constexpr int kRowColumnBytes = kBackwardRows * 128;
  static constexpr int kKeyBytes = kColumns * kKeyColumnBytes;
  static constexpr int kRowBytes = kColumns * kRowColumnBytes;
  static constexpr int kTermBytes = 2 * kBackwardRows * static_cast<int>(sizeof(float));
  static constexpr int kPatternBytes = kTileKeys * static_cast<int>(sizeof(std::uint64_t));

  struct Shared {
    alignas(1024) unsigned char k[kKeyBytes];
    alignas(1024) unsigned char v[kKeyBytes];  ///< also dK and dV on their way out
    alignas(1024) unsigned char q[kStages][kRowBytes];
    alignas(1024) unsigned char dout[kStages][kRowBytes];
    alignas(1024) unsigned char ds[2][kTileKeys * 128];  ///< dSᵀ: 128 keys × 64 rows
    /// A part of each warp, as in BackwardArgs::dq_sums.
    alignas(128) float dq[kDqBuffers][kConsumerWarps][kBackwardRows * kDim / kConsumerWarps];
    alignas(128) float terms[kStages][2][kBackwardRows];  ///< RowTerms
    alignas(128) std::uint64_t pattern[kTileKeys];        ///< one: there is no room for two
    RowTile tile[kStages];
    RowTile dq_tile[kDqBuffers];  ///< what is in dq; index below 0: nothing any more
    KeyWork work;
    std::uint64_t keys_full, keys_empty;
    std::uint64_t q_full[kStages], q_empty[kStages];
    std::uint64_t dout_full[kStages], dout_empty[kStages];
    std::uint64_t pattern_empty;
    std::uint64_t ds_full[2], ds_empty[2];
    std::uint64_t dq_full[kDqBuffers], dq_empty[kDqBuffers];
  };
};

/// Where one is in a ring of kCount buffers: parity is that of the passes so far.
template <int kCount>
struct RingPlace {
  int slot = 0;
  std::uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    if (++slot == kCount) {
      slot = 0;
      parity ^= 1;
    }
  }
};

}  // namespace longca::slice::sm90
