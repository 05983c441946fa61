#pragma once

#include <cstdint>

#include "attention/slice/transposed_lists.h"

namespace longca::slice::sm90 {

/// A query tile on its way, as the producer tells the consumers.
struct RowTile {
  int index;   ///< among those of all head blocks: head block · q_tiles + query tile
  int masked;  ///< it has a pattern
  int rank;    ///< QuerySegment
};

/// The keys that a work group owns next.
struct KeyWork {
  int k_begin, k_end;
  int kv_head;
  int q_tiles;  ///< below 0: nothing, the kernel is over
  int shared;   ///< KeyTile
};

/// kOrdered: dQ is added up in a fixed order.
template <typename Element, int kDim_, bool kOrdered_>
struct BackwardShape {
  using T = Element;
  static constexpr int kDim = kDim_;
  static constexpr bool kOrdered = kOrdered_;
  static constexpr int kStages = 2;
  static constexpr int kThreads = 384;
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
    alignas(128) float dq[kConsumerWarps][kBackwardRows * kDim / kConsumerWarps];  ///< of each warp
    alignas(128) float terms[kStages][2][kBackwardRows];                           ///< RowTerms
    alignas(128) std::uint64_t pattern[kStages][kTileKeys];
    RowTile tile[kStages];
    KeyWork work;
    std::uint64_t keys_full, keys_empty;
    std::uint64_t q_full[kStages], q_empty[kStages];
    std::uint64_t dout_full[kStages], dout_empty[kStages];
    std::uint64_t ds_full[2], ds_empty[2];
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
