#pragma once

#include <cstdint>
#include <span>

#include "attention/cpu/blocked_plan.h"

namespace longca::cpu {

/// One thread's buffers of the backward pass for a key chunk and a query tile. The suffixes rows,
/// transposed and stacked are Packing's layouts, those of v and dO by the packing of values;
/// columns is the padded dimension of the tensor.
struct BackwardScratch {
  // Of the key chunk.
  Word* k_transposed;  ///< [kChunkPanels, dim words, 32]
  Word* v_transposed;  ///< likewise, by the words of v
  Word* k_stacked;     ///< [token words of kChunkKeys, columns]
  float* dk;           ///< [kChunkKeys, columns], without the softmax scale
  float* dv;           ///< [kChunkKeys, columns of v]
  // Of the query tile; rows past its end are 0.
  Word* q_rows;      ///< [kTileRows, row stride]
  Word* do_rows;     ///< likewise
  Word* q_stacked;   ///< pairs: [token words of kTileRows, columns]; float32: alias of q_rows
  Word* do_stacked;  ///< likewise
  float* lse_log2;   ///< [kTileRows] lse in units of log2
  float* delta;      ///< [kTileRows] row sums of dO ∘ O
  float* dq;         ///< [kTileRows, columns], this chunk's part, without the softmax scale
  // Of the pair.
  Word* p;             ///< [token words of kTileRows, kScoreStride] weights P
  Word* ds;            ///< likewise, gradients dS of the scores
  float* scores;       ///< pairs: [8, kScoreStride]; float32 uses p for S and ds for dP
  float* score_grads;  ///< likewise
  Word* ds_rows;       ///< pairs: [8, kScoreStride / 2]

  /// Words per thread.
  static std::int64_t words(const BlockedSetup& setup);
  static BackwardScratch carve(Word* base, const BlockedSetup& setup);
};

/// A query tile and its panels in one key chunk.
struct TileVisit {
  const HeadTiles& head;
  const QueryTile& tile;
  std::span<const PanelRef> panels;  ///< not empty
};

/// Computes P and dS of the visit from the packed operands in `scratch`, overwrites `dq`, and adds
/// to the chunk's `dk` and `dv`.
void backward_tile(const BlockedSetup& setup, const TileVisit& visit,
                   const BackwardScratch& scratch);

}  // namespace longca::cpu
