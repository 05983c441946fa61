#pragma once

#include <cstdint>

#include "attention/kernels/common/mma/backward_tile.cuh"
#include "attention/kernels/common/mma/params.h"
#include "attention/kernels/common/mma/tile_list.cuh"
#include "core/rounding.h"

/// The main loop of backward passes over a TileList: a CTA owns kTileN keys of one KV head, starts
/// their loads (load_keys), fills a list of query tiles and processes it (visit) any number of
/// times, and stores dK and dV (finish). The kernel chooses the keys, the tiles and the masked
/// cells.
namespace longca::mma {

/// A CTA's shared memory without its TileList.
template <typename Shape>
struct BackwardBuffers : Shape::Tiles {
  alignas(128) float dq[Shape::kTileM * Shape::kDim];  ///< source of the TMA reduction
};

/// Number of query tiles and key tiles.
template <typename Shape>
struct TileCounts {
  int q;
  int k;

  __device__ __forceinline__ explicit TileCounts(const AttentionArgs& args)
      : q(ceil_div(args.tokens_q, Shape::kTileM)), k(ceil_div(args.tokens_k, Shape::kTileN)) {}
};

/// A warp's accumulators of dK or dV.
template <typename Shape>
using KeySums = float[Shape::DkFragments::kCount][4];

/// Starts loading K and V [kTileN, kDim] of the keys from `key_begin` on.
template <typename Shape>
__device__ __forceinline__ void load_keys(const AttentionArgs& args, BackwardBuffers<Shape>& shared,
                                          int kv_head, int key_begin) {
  using T = typename Shape::T;
  const SharedTile<Shape::kDim> k_tile{shared_address(shared.k)};
  const SharedTile<Shape::kDim> v_tile{shared_address(shared.v)};
  k_tile.template load<Shape::kTileN, Shape::kThreads>(
      head_rows<const T>(args.k, kv_head, args.tokens_k), key_begin);
  v_tile.template load<Shape::kTileN, Shape::kThreads>(
      head_rows<const T>(args.v, kv_head, args.tokens_k), key_begin);
}

/// The keys that a CTA owns, whose loads load_keys started. `Params` derives from AttentionArgs and
/// GradientArgs. dK and dV are local arrays of the kernel: as members they keep the compiler from
/// folding shared addresses and spill registers.
template <typename Shape, typename Params>
class BackwardKeys {
 public:
  /// Keys [block · kTileN, (block + 1) · kTileN) of the KV head.
  __device__ __forceinline__ BackwardKeys(const Params& params, BackwardBuffers<Shape>& shared,
                                          TileCounts<Shape> tiles, int kv_head, int block)
      : params_(params),
        shared_(shared),
        tiles_(tiles),
        kv_head_(kv_head),
        block_(block),
        warp_(static_cast<int>(threadIdx.x / 32)),
        scores_(warp_),
        scale_log2_(params.scale * kLog2E),
        k_tile_{shared_address(shared.k)},
        v_tile_{shared_address(shared.v)} {}

  /// Accumulates the listed query tiles of query heads [first_head, first_head + heads).
  /// `Tile::of(entry)` decodes a list entry to a tile with an `index`; `mask(warp, s, tile)` sets
  /// the scores of masked cells to −∞. Called by the whole CTA; the list may be overwritten on
  /// return.
  template <typename Tile, typename Mask>
  __device__ __forceinline__ void visit(const TileList& list, int first_head, int heads,
                                        KeySums<Shape>& dk, KeySums<Shape>& dv, Mask mask) const {
    const SharedTile<kDim> q_tile{shared_address(shared_.q)};
    const SharedTile<kDim> dout_tile{shared_address(shared_.dout)};
    const SharedTile<kTileM> p_tile{shared_address(shared_.p)};
    const SharedTile<kTileM> ds_tile{shared_address(shared_.ds)};
    const int count = list.count;
    const int items = count * heads;
    const auto tile_of = [&](const Item& item) { return Tile::of(list.entries[item.place]); };
    const auto load = [&](const Item& item, std::uint32_t stage) {
      const int row_begin = tile_of(item).index * kTileM;
      const SharedTile<kDim> q_stage{q_tile.base + stage * kTileBytes};
      const SharedTile<kDim> dout_stage{dout_tile.base + stage * kTileBytes};
      q_stage.template load<kTileM, Shape::kThreads>(
          head_rows<const T>(params_.q, item.head, params_.tokens_q), row_begin);
      dout_stage.template load<kTileM, Shape::kThreads>(
          head_rows<const T>(params_.dout, item.head, params_.tokens_q), row_begin);
      if (threadIdx.x < kTileM / 2) {
        const std::int64_t row =
            static_cast<std::int64_t>(item.head) * tiles_.q * kTileM + row_begin + threadIdx.x * 2;
        cp_async(shared_address(shared_.row_terms[stage][threadIdx.x * 2]),
                 params_.row_terms + row * 2);
      }
    };
    // This warp's part of dQ = dS · K for an item whose dS is in shared memory.
    const MatrixAddress<kTileM> dq_left{ds_tile.by_columns().at(0, Dq::row(warp_) / 16)};
    const MatrixAddress<kDim> dq_right{k_tile_.by_rows().at(0, Dq::column(warp_) / 16)};
    const auto add_dq = [&](const Item& item, std::uint32_t stage) {
      float dq[Dq::kCount][4];
      gemm_dq<Shape>(dq, dq_left + stage * kDsBytes, dq_right);
      Dq::add_async(params_.dq_sum, item.head * tiles_.q + tile_of(item).index, dq,
                    shared_address(shared_.dq));
    };

    Item next{first_head, 0};
    Item item = next;
    if (items > 0) load(next, 0);
    cp_async_commit();
    for (int i = 0; i < items; ++i) {
      cp_async_wait<0>();
      __syncthreads();  // item i is loaded, dS of i − 1 is stored, and item i − 2 has been read
      const Item previous = item;
      item = next;
      next.advance(count);
      const std::uint32_t stage = i % 2;
      if (i + 1 < items) load(next, 1 - stage);
      cp_async_commit();
      if (i > 0) add_dq(previous, 1 - stage);

      const SharedTile<kDim> q_stage{q_tile.base + stage * kTileBytes};
      const SharedTile<kDim> dout_stage{dout_tile.base + stage * kTileBytes};
      const SharedTile<kTileM> ds_stage{ds_tile.base + stage * kDsBytes};
      float p[2][4][4];
      scores_.multiply(p, k_tile_, q_stage);
      mask(scores_, p, tile_of(item));
      // No branch from here on, so that exponentials overlap with MMAs.
      scores_.exponentiate(p, shared_.row_terms[stage], scale_log2_);
      float ds[2][4][4];
      scores_.multiply(ds, v_tile_, dout_stage);
      scores_.store(p, p_tile);
      scores_.differentiate(ds, p, shared_.row_terms[stage]);
      scores_.store(ds, ds_stage);

      scores_.add_own(dv, p, dout_stage);
      scores_.add_own(dk, ds, q_stage);
      scores_.sync_warp_pair();
      scores_.add_other(dv, p_tile, dout_stage);
      scores_.add_other(dk, ds_stage, q_stage);
    }
    __syncthreads();
    if (items > 0) add_dq(item, (items - 1) % 2);
    __syncthreads();  // before the list and the stages are overwritten
  }

  /// Stores dK and dV, or adds them to the float32 sums if other CTAs have a part of the heads.
  __device__ __forceinline__ void finish(const KeySums<Shape>& dk, const KeySums<Shape>& dv) const {
    cp_async_wait_all();
    bulk_wait();      // dQ reductions are complete
    __syncthreads();  // K and V are loaded, even if no tile was visited

    if (params_.head_parts > 1) {
      Dk::add(params_.dk_sum, kv_head_ * tiles_.k + block_, dk);
      Dk::add(params_.dv_sum, kv_head_ * tiles_.k + block_, dv);
      return;
    }
    Dk::template stage<T>(dk, params_.scale, k_tile_);
    Dk::template stage<T>(dv, 1, v_tile_);
    __syncthreads();
    write(k_tile_, params_.dk);
    write(v_tile_, params_.dv);
  }

 private:
  using T = typename Shape::T;
  using Dq = typename Shape::DqFragments;
  using Dk = typename Shape::DkFragments;
  static constexpr int kDim = Shape::kDim;
  static constexpr int kTileM = Shape::kTileM;
  static constexpr int kTileN = Shape::kTileN;
  static constexpr std::uint32_t kTileBytes = sizeof(Shape::Tiles::q[0]);
  static constexpr std::uint32_t kDsBytes = sizeof(Shape::Tiles::ds[0]);

  __device__ __forceinline__ void write(SharedTile<kDim> from, const TensorArg& to) const {
    copy_rows<kTileN, Shape::kThreads>(from, head_rows<T>(to, kv_head_, params_.tokens_k),
                                       block_ * kTileN, static_cast<int>(threadIdx.x));
  }

  const Params& params_;
  BackwardBuffers<Shape>& shared_;
  TileCounts<Shape> tiles_;
  int kv_head_;
  int block_;
  int warp_;
  ScoreWarp<Shape> scores_;
  float scale_log2_;
  SharedTile<kDim> k_tile_;
  SharedTile<kDim> v_tile_;
};

}  // namespace longca::mma
