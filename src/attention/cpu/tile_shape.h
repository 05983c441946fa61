#pragma once

namespace longca::cpu {

/// Query rows per micro-kernel: 8 × 32 float32 accumulators take 16 AVX-512 registers, which hides
/// the latency of the fused multiply-add and leaves registers for both operands.
inline constexpr int kGroupRows = 8;
/// Keys per panel, the unit in which keys are packed, skipped and masked: one 32-bit word of a
/// mask.
inline constexpr int kPanelKeys = 32;
/// Query rows per tile; they share one loop over the keys.
inline constexpr int kTileRows = 128;
inline constexpr int kTileGroups = kTileRows / kGroupRows;
/// Panels per softmax step of the forward pass: 8 rows of scores stay in the L1 cache.
inline constexpr int kStepPanels = 8;
/// Panels per key chunk, the part of dK and dV that a task of the backward pass owns. Longer chunks
/// read Q and dO and update dQ less often; with 256 keys and head dimension 128 the float32
/// operands about fill a 1 MiB L2 cache (docs/design/cpu-kernels.md).
inline constexpr int kChunkPanels = 8;
inline constexpr int kChunkKeys = kChunkPanels * kPanelKeys;
/// Words between rows of scores; not a power of two, so that rows map to different cache sets.
inline constexpr int kScoreStride = kStepPanels * kPanelKeys + 16;

static_assert(kTileRows % kGroupRows == 0 && kChunkPanels <= kStepPanels);

}  // namespace longca::cpu
