#pragma once

#include <cstdint>

#include "attention/kernels/common/mma/backward_pass.cuh"
#include "attention/kernels/common/mma/backward_tile.cuh"
#include "attention/kernels/common/softcap.cuh"
#include "attention/kernels/slice/launch.h"

// The backward pass on mma.sync, for GPUs of compute capability 8.0 and later. It walks the same
// lists as the one for 9.0, made for packs of one head.
namespace longca::slice::sm80 {

struct BackwardKernelArgs {
  BackwardParams params;
  int q_tiles;             ///< query tiles of a query head
  int group_size;          ///< query heads of a KV head
  const float* row_terms;  ///< mma::GradientArgs
  float* dq_accum;         ///< likewise
  /// Split key tiles: [heads_k, split_tiles, kParts, dK and dV], each in the layout of DkFragments.
  float* dkv_accum;
  std::int32_t* dq_semaphores;  ///< [heads_q, q_tiles]: additions done, if ordered
  std::int32_t* work_counter;
};

/// Key tile `tile` of the list that a query head reads.
__device__ __forceinline__ const KeyTile& tile_of(const BackwardKernelArgs& args, int head,
                                                  int tile) {
  const DeviceTransposedLists& lists = args.params.lists;
  const std::int64_t list =
      std::int64_t{head} * lists.list_heads / args.params.heads_q * lists.tiles_per_list;
  return lists.tiles[list + tile];
}

/// What a CTA computes. KV heads come in sections; every item of the order is taken for all heads
/// of a section, and part by part, before the next.
struct KeyTileWork {
  int kv_head;
  WorkItem item;
  int part;  ///< of the key tile: its keys [part · kTileN, (part + 1) · kTileN)

  __device__ __forceinline__ static KeyTileWork of(const BackwardKernelArgs& args, int parts,
                                                   int index) {
    const DeviceTransposedLists& lists = args.params.lists;
    const int id = index / parts;
    const int section_items = lists.items_per_order * lists.section_heads;
    const int rest = id % section_items;
    const int kv_head = id / section_items * lists.section_heads + rest % lists.section_heads;
    const std::int64_t order = lists.list_heads == 1 ? 0 : kv_head;
    return {kv_head, lists.order[order * lists.items_per_order + rest / lists.section_heads],
            index % parts};
  }
};

/// A query tile to visit.
struct Visit {
  int head;  ///< −1 after the last visit
  int q_tile;
  int pattern;     ///< index of TransposedLists::patterns, or kFull
  int prior_adds;  ///< QuerySegment::prior_adds
};

/// The visits of an item: one query head after the other, the last query tiles first. Kept in
/// shared memory and advanced by one thread, which leaves the registers to the accumulators.
struct VisitWalk {
  WorkItem item;
  int head;
  int last_head;
  int segments_left;
  int first, left;  ///< of the segment's query tiles that are in the item
  QuerySegment segment;
  const QuerySegment* segments;

  __device__ __forceinline__ void begin(const BackwardKernelArgs& args, const KeyTileWork& work) {
    item = work.item;
    head = work.kv_head * args.group_size - 1;
    last_head = head + args.group_size;
    segments_left = left = 0;
  }
  __device__ __forceinline__ Visit next(const BackwardKernelArgs& args) {
    while (left <= 0) {
      if (segments_left == 0) {
        if (head == last_head) return {-1, 0, 0, 0};
        begin_list(args.params.lists, tile_of(args, ++head, item.tile));
        continue;
      }
      segment = *segments++;
      first = max(segment.q_tile, item.q_begin);
      left = min(segment.q_tile + segment.count, item.q_end) - first;
      segments_left = left > 0 ? segments_left - 1 : 0;  // later segments lie before the item
    }
    --left;
    return {head, first + left, segment.pattern, segment.prior_adds};
  }

 private:
  /// Finds the first segment with query tiles before item.q_end, by bisection: segments are sorted
  /// from the last query tile to the first.
  __device__ __forceinline__ void begin_list(const DeviceTransposedLists& lists,
                                             const KeyTile& tile) {
    segments = lists.segments + tile.segments_begin;
    int begin = 0;
    for (int end = tile.segments; begin < end;) {
      const int middle = (begin + end) / 2;
      segments[middle].q_tile >= item.q_end ? begin = middle + 1 : end = middle;
    }
    segments += begin;
    segments_left = tile.segments - begin;
    left = 0;
  }
};

/// A CTA owns kTileN keys: a key tile or, on devices with less shared memory, half of one. Q has
/// two stages; dO, P and dS one each, so that 64 keys of 128 dimensions fit in 99 KB.
template <typename Element, int kDim_, int kTileN_>
struct BackwardShape : mma::BackwardShape<Element, kDim_, kTileN_> {
  using Base = mma::BackwardShape<Element, kDim_, kTileN_>;
  using Base::kDim, Base::kTileM, Base::kTileN, Base::kThreads;
  static constexpr int kParts = kTileKeys / kTileN;  ///< CTAs of a key tile
  static_assert(kTileM == kBackwardRows);

  struct Tiles {
    alignas(1024) Element k[kTileN * kDim];
    alignas(1024) Element v[kTileN * kDim];
    alignas(1024) Element q[2][kTileM * kDim];
    alignas(1024) Element dout[kTileM * kDim];
    alignas(1024) Element p[kTileN * kTileM];  ///< [keys, queries]
    alignas(1024) Element ds[kTileN * kTileM];
    alignas(16) float row_terms[2][kTileM][2];     ///< mma::GradientArgs
    alignas(16) std::uint64_t pattern[2][kTileN];  ///< bit r of a key's word: row r sees it
    VisitWalk walk;
    Visit visits[4];  ///< visit i at i % 4, written two ahead
    KeyTileWork work;
  };
};

/// Waits until `count` additions to a query tile's dQ are done. Called by one thread; the barrier
/// behind it passes the acquire on to the others. Cannot deadlock: earlier items were taken
/// earlier, by CTAs that are running.
__device__ __forceinline__ void wait_additions(const std::int32_t* semaphore, std::int32_t count) {
  std::int32_t seen = 0;
  do {
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];\n" : "=r"(seen) : "l"(semaphore) : "memory");
  } while (seen != count);
}
/// Publishes an addition of the whole CTA: each thread has fenced its own, and a barrier lies
/// between.
__device__ __forceinline__ void set_additions(std::int32_t* semaphore, std::int32_t count) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;\n" ::"l"(semaphore), "r"(count) : "memory");
}

template <typename T>
__device__ __forceinline__ mma::HeadRows<T> head_rows(const TensorArg& tensor, int head,
                                                      int tokens) {
  return {static_cast<T*>(tensor.data) + head * tensor.head_stride, tensor.token_stride, tokens};
}

/// One CTA per part of a work item: dK and dV of kTileN keys of one KV head, summed over its query
/// heads, and what these keys add to dQ.
template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    backward_kernel(const __grid_constant__ BackwardKernelArgs args) {
  using T = typename Shape::T;
  using Dq = typename Shape::DqFragments;
  using Dk = typename Shape::DkFragments;
  constexpr int kDim = Shape::kDim;
  constexpr int kTileM = Shape::kTileM;
  constexpr int kTileN = Shape::kTileN;
  constexpr int kParts = Shape::kParts;
  constexpr std::uint32_t kRowBytes = sizeof(Shape::Tiles::q[0]);
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<typename Shape::Tiles*>(shared_bytes);
  const BackwardParams& params = args.params;
  const int thread = static_cast<int>(threadIdx.x);

  // Taken in order, so that nobody waits for an item that no CTA has begun (wait_additions).
  if (thread == 0) {
    shared.work = KeyTileWork::of(args, kParts, atomicAdd(args.work_counter, 1));
    shared.walk.begin(args, shared.work);
    for (int i = 0; i < 2; ++i) shared.visits[i] = shared.walk.next(args);
  }
  __syncthreads();
  // A reference into shared memory, as registers are short.
  const KeyTileWork& work = shared.work;
  const KeyTile& keys = tile_of(args, work.kv_head * args.group_size, work.item.tile);
  const int key_begin = keys.k_begin + work.part * kTileN;
  // Ordered: a part without keys counts its (zero) additions all the same, as others wait for them.
  if (key_begin >= keys.k_end && !params.ordered) return;
  const mma::ScoreWarp<Shape> scores(thread / 32);

  const mma::SharedTile<kDim> k_tile{mma::shared_address(shared.k)};
  const mma::SharedTile<kDim> v_tile{mma::shared_address(shared.v)};
  const mma::SharedTile<kDim> q_tile{mma::shared_address(shared.q)};
  const mma::SharedTile<kDim> dout_tile{mma::shared_address(shared.dout)};
  const mma::SharedTile<kTileM> p_tile{mma::shared_address(shared.p)};
  const mma::SharedTile<kTileM> ds_tile{mma::shared_address(shared.ds)};

  const auto load_rows = [&](const Visit& visit, int stage) {
    const mma::SharedTile<kDim> to{q_tile.base + stage * kRowBytes};
    to.template load<kTileM, Shape::kThreads>(
        head_rows<const T>(params.q, visit.head, params.tokens_q), visit.q_tile * kTileM);
    if (thread < kTileM / 2) {
      const std::int64_t row =
          (std::int64_t{visit.head} * args.q_tiles + visit.q_tile) * kTileM + thread * 2;
      mma::cp_async(mma::shared_address(shared.row_terms[stage][thread * 2]),
                    args.row_terms + row * 2);
    } else if (thread >= 64 && thread < 64 + kTileN / 2 && visit.pattern != kFull) {
      const int key = (thread - 64) * 2;
      mma::cp_async(mma::shared_address(&shared.pattern[stage][key]),
                    params.lists.patterns + std::int64_t{visit.pattern} * kTileKeys +
                        work.part * kTileN + key);
    }
  };
  const auto load_dout = [&](const Visit& visit) {
    dout_tile.template load<kTileM, Shape::kThreads>(
        head_rows<const T>(params.dout, visit.head, params.tokens_q), visit.q_tile * kTileM);
  };

  float dk[Dk::kCount][4] = {};
  float dv[Dk::kCount][4] = {};
  const bool capped = params.softcap.cap > 0;
  const float scale_log2 = capped ? 1 : params.scale * kLog2E;
  const mma::MatrixAddress<kTileM> dq_left{ds_tile.by_columns().at(0, Dq::row(thread / 32) / 16)};
  const mma::MatrixAddress<kDim> dq_right{k_tile.by_rows().at(0, Dq::column(thread / 32) / 16)};

  k_tile.template load<kTileN, Shape::kThreads>(
      head_rows<const T>(params.k, work.kv_head, keys.k_end), key_begin);
  if (shared.visits[0].head >= 0) load_rows(shared.visits[0], 0);
  mma::cp_async_commit();
  v_tile.template load<kTileN, Shape::kThreads>(
      head_rows<const T>(params.v, work.kv_head, keys.k_end), key_begin);
  if (shared.visits[0].head >= 0) load_dout(shared.visits[0]);
  mma::cp_async_commit();
  mma::cp_async_wait<1>();
  __syncthreads();  // K, Q and row terms have arrived; V and dO may not

  for (unsigned i = 0; shared.visits[i % 4].head >= 0; ++i) {
    const int stage = static_cast<int>(i % 2);
    if (shared.visits[(i + 1) % 4].head >= 0) load_rows(shared.visits[(i + 1) % 4], stage ^ 1);
    mma::cp_async_commit();
    const mma::SharedTile<kDim> q_stage{q_tile.base + stage * kRowBytes};
    float p[2][4][4];
    scores.multiply(p, k_tile, q_stage);
    if (capped) cap_scores<32>(&p[0][0][0], params.softcap);
    if (shared.visits[i % 4].pattern != kFull) {
      scores.mask(p, [&](int key) {
        const std::uint64_t seen = shared.pattern[stage][key];
        return [=](int query) { return (seen >> query & 1) == 0; };
      });
    }
    scores.exponentiate(p, shared.row_terms[stage], scale_log2);
    mma::cp_async_wait<1>();
    __syncthreads();  // V and dO have arrived; the Q loaded last may not
    if (thread == 0) shared.visits[(i + 2) % 4] = shared.walk.next(args);
    float ds[2][4][4];
    scores.multiply(ds, v_tile, dout_tile);
    scores.store(p, p_tile);
    scores.differentiate(ds, p, shared.row_terms[stage]);
    if (capped) scores.apply_slopes(ds, p, shared.row_terms[stage], params.softcap.cap_log2);
    scores.store(ds, ds_tile);
    scores.add_own(dv, p, dout_tile);
    scores.add_own(dk, ds, q_stage);
    __syncthreads();  // P and dS are written
    scores.add_other(dv, p_tile, dout_tile);
    scores.add_other(dk, ds_tile, q_stage);
    float dq[Dq::kCount][4];
    mma::gemm_dq<Shape>(dq, dq_left, dq_right);
    const int index = shared.visits[i % 4].head * args.q_tiles + shared.visits[i % 4].q_tile;
    const std::int32_t prior_adds = shared.visits[i % 4].prior_adds * kParts + work.part;
    if (params.ordered) {
      if (thread == 0) wait_additions(args.dq_semaphores + index, prior_adds);
      __syncthreads();
    }
    Dq::add(args.dq_accum, index, dq);
    if (params.ordered) __threadfence();  // before set_additions, behind the barrier below
    mma::cp_async_wait<0>();
    __syncthreads();  // the next rows have arrived; dO, P and dS are read
    if (params.ordered && thread == 0) set_additions(args.dq_semaphores + index, prior_adds + 1);
    if (shared.visits[(i + 1) % 4].head >= 0) load_dout(shared.visits[(i + 1) % 4]);
    mma::cp_async_commit();
  }
  mma::cp_async_wait_all();
  __syncthreads();  // K and V have arrived even if no tile was visited

  if (work.item.split >= 0) {
    const std::int64_t place =
        ((std::int64_t{work.kv_head} * params.lists.split_tiles + work.item.split) * kParts +
         work.part) *
        2;
    Dk::add(args.dkv_accum, place, dk);
    Dk::add(args.dkv_accum, place + 1, dv);
    return;
  }
  if (params.dkv_mode == StoreMode::add_float32) {
    Dk::add_to_rows(dk, params.scale, head_rows<float>(params.dk, work.kv_head, keys.k_end),
                    key_begin);
    Dk::add_to_rows(dv, 1, head_rows<float>(params.dv, work.kv_head, keys.k_end), key_begin);
    return;
  }
  // dK and dV leave through the tiles of K and V, which nobody reads any more.
  Dk::template stage<T>(dk, params.scale, k_tile);
  Dk::template stage<T>(dv, 1, v_tile);
  __syncthreads();
  mma::copy_rows<kTileN, Shape::kThreads>(k_tile, head_rows<T>(params.dk, work.kv_head, keys.k_end),
                                          key_begin, thread);
  mma::copy_rows<kTileN, Shape::kThreads>(v_tile, head_rows<T>(params.dv, work.kv_head, keys.k_end),
                                          key_begin, thread);
}

/// Rounds the accumulators of split key tiles: dK (blockIdx.z = 0) or dV (1) of a part of a key
/// tile (blockIdx.x) of a KV head (blockIdx.y).
template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads)
    split_keys_kernel(const BackwardKernelArgs args) {
  const BackwardParams& params = args.params;
  const int part = static_cast<int>(blockIdx.x) % Shape::kParts;
  const KeyRange keys = params.lists.split_keys[blockIdx.x / Shape::kParts];
  const std::int64_t place = (std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x) * 2 + blockIdx.z;
  const TensorArg& to = blockIdx.z == 0 ? params.dk : params.dv;
  mma::convert_tile<typename Shape::DkFragments, typename Shape::T, Shape::kDim>(
      args.dkv_accum, place, blockIdx.z == 0 ? params.scale : 1,
      {to.data, to.token_stride, to.head_stride}, static_cast<int>(blockIdx.y),
      {keys.begin + part * Shape::kTileN, keys.end}, params.dkv_mode == StoreMode::add_float32);
}

}  // namespace longca::slice::sm80
