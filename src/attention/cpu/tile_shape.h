#pragma once

#include <cstdint>

namespace longca::cpu {

/// Query rows that a micro-kernel computes at once: 8 × 32 float32 accumulators are 16 AVX-512
/// registers, which leaves room for both operands and hides the latency of the fused multiply-add.
inline constexpr int kGroupRows = 8;
/// Keys of a panel: the unit in which keys are packed, skipped and masked. A row of a panel's mask
/// is one 32-bit word.
inline constexpr int kPanelKeys = 32;
/// Query rows of a tile: the rows that share one walk over the keys.
inline constexpr int kTileRows = 128;
inline constexpr int kTileGroups = kTileRows / kGroupRows;
/// Panels that one softmax step of the forward pass covers: 8 rows of scores stay in the L1 cache.
inline constexpr int kStepPanels = 8;
/// Panels of a key chunk, the part of dK and dV that one item of the backward pass owns. Longer
/// chunks read Q and dO and update dQ less often; at 256 keys and head dimension 128 the float32
/// operands still about fill a 1 MiB L2 cache (docs/design/cpu-kernels.md).
inline constexpr int kChunkPanels = 8;
inline constexpr int kChunkKeys = kChunkPanels * kPanelKeys;
/// Words from one row of scores to the next; no power of two, so that rows fall into different sets
/// of the cache.
inline constexpr int kScoreStride = kStepPanels * kPanelKeys + 16;

static_assert(kTileRows % kGroupRows == 0 && kChunkPanels <= kStepPanels);

constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace longca::cpu
