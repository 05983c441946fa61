#pragma once

#include <cuda.h>

#include <cstdint>

#include "attention/kernels/slice/launch.h"

namespace longca::slice::sm90 {

/// What the kernel is launched with: tensor maps over [tokens, heads, dim] whose boxes are 64
/// elements wide, and how work is numbered. An item is a query tile of a head block, the P heads of
/// one KV head that share its rows.
struct ForwardArgs {
  CUtensorMap q;     ///< box of P heads × 128 / P tokens
  CUtensorMap k, v;  ///< box of a half
  CUtensorMap o;     ///< box of P heads × 64 / P tokens
  ForwardParams params;
  int pack_shift;  ///< log2 P
  /// Head blocks (pairs of them where a cluster takes two) of a section: the tiles of one section
  /// come before those of the next, so that its K and V stay in L2.
  int section_blocks;
  int items;
};

/// An item, as the producer tells the consumers.
struct Work {
  int row_begin, row_end;  ///< row_begin < 0: nothing, the kernel is over
  int head;                ///< first of the P query heads
  int singles;  ///< listed tiles, the first ones, of which a half is there: no products with the
                ///< other
  int listed_count, full_tiles;  ///< listed_count with the singles
};

/// A CTA: one warpgroup whose first warp is the producer, two that compute 64 rows each. Of
/// 65536 registers, 56 a thread are enough for the one and 224 for the others.
template <typename Element, int kDim_, bool kAccumulate_, int kCluster_ = 1>
struct ForwardShape {
  using T = Element;
  static constexpr int kDim = kDim_;
  static constexpr bool kAccumulate = kAccumulate_;
  /// CTAs (1 or 2) that compute a tile for neighbouring head blocks of one KV head: each
  /// loads a half of every key tile for both, which spares L2 and power.
  static constexpr int kCluster = kCluster_;
  static constexpr int kTileM = kRowGroups * kGroupRows;
  static constexpr int kThreads = 384;
  static constexpr int kConsumerWarps = 8;
  static constexpr int kProducerRegisters = 56;
  static constexpr int kConsumerRegisters = 224;
  /// The consumers queue their products of full tiles in turns. At 64 dimensions exponentials take
  /// as long as products: by themselves both consumers would exponentiate at the same time.
  static constexpr bool kTurns = kDim == 64;
  /// Two key tiles under way. More were slower at 128 dimensions.
  static constexpr int kSlots = 4;
  /// A tile of 128 rows or keys lies in shared memory as columns of 64 elements.
  static constexpr int kColumns = kDim / 64;
  static constexpr int kColumnBytes = 128 * 64 * 2;
  static constexpr int kTileBytes = kColumns * kColumnBytes;

  struct Shared {
    alignas(1024) unsigned char q[2][kTileBytes];          ///< also O on its way out
    alignas(1024) unsigned char ring[kSlots][kTileBytes];  ///< K, V, K, V, … of the key tiles
    /// Of the key tile whose K is in the slot.
    alignas(128) RowIntervals intervals[kSlots][kRowGroups][kGroupRows];
    int pattern[kSlots][kRowGroups];
    Work work[2];  ///< whose rows are in q
    std::uint64_t q_full[2], q_empty[2];
    std::uint64_t full[kSlots], empty[kSlots];
    int item;  ///< the next, told by the first CTA of the cluster
    std::uint64_t item_full, item_empty;
  };
};

/// Where one is in a ring of kCount buffers. `parity` is that of the passes so far: what a consumer
/// waits for; a producer waits for the other.
template <int kCount>
struct RingPosition {
  int slot = 0;
  std::uint32_t parity = 0;

  __device__ void advance() {
    if (++slot == kCount) {
      slot = 0;
      parity ^= 1;
    }
  }
};

}  // namespace longca::slice::sm90
