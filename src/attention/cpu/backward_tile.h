#pragma once

#include <cstdint>
#include <span>

#include "attention/cpu/blocked_plan.h"

namespace longca::cpu {

/// One thread's buffers of the backward pass: the operands and sums of one key chunk and one query
/// tile. "Rows", "transposed" and "stacked" are Packing's layouts; columns are the padded head
/// dimension.
struct BackwardScratch {
  // Of the key chunk.
  Word* k_transposed;  ///< [kChunkPanels, dim words, 32]
  Word* v_transposed;  ///< likewise
  Word* k_stacked;     ///< [token words of kChunkKeys, columns]
  float* dk;           ///< [kChunkKeys, columns], without the softmax scale
  float* dv;           ///< [kChunkKeys, columns]
  // Of the query tile; rows past its end are zeros.
  Word* q_rows;      ///< [kTileRows, row stride]
  Word* do_rows;     ///< likewise
  Word* q_stacked;   ///< pairs: [token words of kTileRows, columns]; float32: q_rows serve
  Word* do_stacked;  ///< likewise
  float* lse_log2;   ///< [kTileRows] lse in units of log2
  float* delta;      ///< [kTileRows] row sums of dO ∘ O
  float* dq;         ///< [kTileRows, columns], this chunk's part, without the softmax scale
  // Of both.
  Word* p;        ///< [token words of kTileRows, kScoreStride] weights P
  Word* ds;       ///< likewise, gradients dS of the scores
  float* scores;  ///< pairs: [8, kScoreStride]; float32 scores stand in p and their gradients in ds
  float* score_grads;  ///< likewise
  Word* ds_rows;       ///< pairs: [8, kScoreStride / 2]

  /// Words that one thread needs.
  static std::int64_t words(const Packing& packing, bool pairs);
  static BackwardScratch carve(Word* base, const Packing& packing, bool pairs);
};

/// A query tile and those of its panels that lie in one key chunk.
struct TileVisit {
  const HeadTiles& head;
  const QueryTile& tile;
  std::span<const PanelRef> panels;  ///< not empty
};

/// Computes S, P, dP and dS of the tile's cells, sets the tile's dq, and adds to the chunk's dk and
/// dv, all from operands packed in `scratch`.
void backward_tile(const BlockedSetup& setup, const TileVisit& visit,
                   const BackwardScratch& scratch);

}  // namespace longca::cpu
