#pragma once

#include <cstdint>

#include "attention/kernels/common/mma/backward_pass.cuh"
#include "attention/kernels/common/mma/backward_tile.cuh"
#include "attention/kernels/common/softcap.cuh"
#include "attention/kernels/slice/sm80/backward_work.cuh"

// The backward pass on mma.sync, for GPUs of compute capability 8.0 and later. It walks the same
// lists as the one for 9.0, made for packs of one head.
namespace longca::slice::sm80 {

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
__device__ __forceinline__ void wait_dq_semaphore(const std::int32_t* semaphore,
                                                  std::int32_t count) {
  std::int32_t seen = 0;
  do {
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];\n" : "=r"(seen) : "l"(semaphore) : "memory");
  } while (seen != count);
}
/// Publishes an addition of the whole CTA: each thread has fenced its own, and a barrier lies
/// between.
__device__ __forceinline__ void release_dq_semaphore(std::int32_t* semaphore, std::int32_t count) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;\n" ::"l"(semaphore), "r"(count) : "memory");
}

/// Takes the CTA's work item, and its first two visits. Items are taken in order, so that nobody
/// waits for one that no CTA has begun (wait_dq_semaphore).
template <typename Shape>
__device__ __forceinline__ void take_work(const BackwardKernelArgs& args,
                                          typename Shape::Tiles& shared) {
  if (threadIdx.x == 0) {
    shared.work = KeyTileWork::of(args, Shape::kParts, atomicAdd(args.work_counter, 1));
    shared.walk.begin(args, shared.work);
    for (int i = 0; i < 2; ++i) shared.visits[i] = shared.walk.next(args);
  }
  __syncthreads();
}

/// The part of a key tile that a CTA has taken (take_work), and the steps of backward_kernel. All
/// threads call them. dK and dV are local arrays of the kernel: as members they would spill
/// (mma::BackwardKeys).
template <typename Shape>
class KeyTilePart {
 public:
  using Tiles = typename Shape::Tiles;
  using Scores = typename mma::ScoreWarp<Shape>::Scores;
  using KeySum = typename mma::ScoreWarp<Shape>::Sum;  ///< of dK or dV

  __device__ __forceinline__ KeyTilePart(const BackwardKernelArgs& args, Tiles& shared)
      : args_(args),
        params_(args.params),
        shared_(shared),
        work_(shared.work),
        keys_(tile_of(args, work_.kv_head * args.group_size, work_.item.tile)),
        key_begin_(keys_.k_begin + work_.part * kTileN),
        scores_(warp()),
        scale_log2_(capped() ? 1 : params_.scale * kLog2E),
        k_tile_{mma::shared_address(shared.k)},
        v_tile_{mma::shared_address(shared.v)},
        q_tile_{mma::shared_address(shared.q)},
        dout_tile_{mma::shared_address(shared.dout)},
        p_tile_{mma::shared_address(shared.p)},
        ds_tile_{mma::shared_address(shared.ds)},
        dq_left_{ds_tile_.by_columns().at(0, Dq::row(warp()) / 16)},
        dq_right_{k_tile_.by_rows().at(0, Dq::column(warp()) / 16)} {}

  /// Whether the key tile ends before this part of it.
  __device__ __forceinline__ bool is_empty() const { return key_begin_ >= keys_.k_end; }

  /// Loads K, V and the rows of the first visit. On return K, Q and row terms have arrived; V and
  /// dO may not have.
  __device__ __forceinline__ void load_first() const {
    const Visit& first = shared_.visits[0];
    load_keys(params_.k, k_tile_);
    if (first.head >= 0) load_rows(first, 0);
    mma::cp_async_commit();
    load_keys(params_.v, v_tile_);
    if (first.head >= 0) load_dout(first);
    mma::cp_async_commit();
    mma::cp_async_wait<1>();
    __syncthreads();
  }

  /// Adds visit `i` to dK, dV and dQ. Q of the next visit is loaded meanwhile; its dO, which has
  /// but one stage, once this visit's has been read.
  __device__ __forceinline__ void visit(unsigned i, KeySum& dk, KeySum& dv) const {
    const Visit& current = shared_.visits[i % 4];
    const Visit& next = shared_.visits[(i + 1) % 4];
    const int stage = static_cast<int>(i % 2);
    if (next.head >= 0) load_rows(next, stage ^ 1);
    mma::cp_async_commit();
    float p[2][4][4];
    compute_p(p, current, stage);
    mma::cp_async_wait<1>();
    __syncthreads();  // V and dO have arrived; the Q loaded last may not
    if (threadIdx.x == 0) shared_.visits[(i + 2) % 4] = shared_.walk.next(args_);
    float ds[2][4][4];
    compute_ds(ds, p, stage);
    scores_.add_own(dv, p, dout_tile_);
    scores_.add_own(dk, ds, q_stage(stage));
    __syncthreads();  // P and dS are written
    scores_.add_other(dv, p_tile_, dout_tile_);
    scores_.add_other(dk, ds_tile_, q_stage(stage));
    add_dq(current);
    mma::cp_async_wait<0>();
    __syncthreads();  // the next rows have arrived; dO, P and dS are read
    if (params_.ordered) publish_dq(current);
    if (next.head >= 0) load_dout(next);
    mma::cp_async_commit();
  }

  /// Writes dK and dV into the gradients or, of a split key tile, adds them to its accumulators.
  __device__ __forceinline__ void write(const KeySum& dk, const KeySum& dv) const {
    mma::cp_async_wait_all();
    __syncthreads();  // K and V have arrived even if no tile was visited
    if (work_.item.split >= 0) {
      add_to_accumulators(dk, dv);
    } else if (params_.dkv_mode == StoreMode::add_float32) {
      Dk::add_to_rows(dk, params_.scale, key_rows<float>(params_.dk), key_begin_);
      Dk::add_to_rows(dv, 1, key_rows<float>(params_.dv), key_begin_);
    } else {
      overwrite(dk, dv);
    }
  }

 private:
  using T = typename Shape::T;
  using Dq = typename Shape::DqFragments;
  using Dk = typename Shape::DkFragments;
  static constexpr int kDim = Shape::kDim;
  static constexpr int kTileM = Shape::kTileM;
  static constexpr int kTileN = Shape::kTileN;
  static constexpr int kParts = Shape::kParts;
  static constexpr int kThreads = Shape::kThreads;
  static constexpr std::uint32_t kRowBytes = sizeof(Tiles::q[0]);

  static __device__ __forceinline__ int warp() { return static_cast<int>(threadIdx.x / 32); }
  __device__ __forceinline__ bool capped() const { return params_.softcap.cap > 0; }
  __device__ __forceinline__ mma::SharedTile<kDim> q_stage(int stage) const {
    return {q_tile_.base + stage * kRowBytes};
  }
  template <typename Element>
  __device__ __forceinline__ mma::HeadRows<Element> key_rows(const TensorArg& tensor) const {
    return mma::head_rows<Element>(tensor, work_.kv_head, keys_.k_end);
  }

  __device__ __forceinline__ void load_keys(const TensorArg& from, mma::SharedTile<kDim> to) const {
    to.template load<kTileN, kThreads>(key_rows<const T>(from), key_begin_);
  }

  /// Loads Q, row terms and the pattern of a visit.
  __device__ __forceinline__ void load_rows(const Visit& visit, int stage) const {
    const int thread = static_cast<int>(threadIdx.x);
    q_stage(stage).template load<kTileM, kThreads>(
        mma::head_rows<const T>(params_.q, visit.head, params_.tokens_q), visit.q_tile * kTileM);
    if (thread < kTileM / 2) {
      const std::int64_t row =
          (std::int64_t{visit.head} * args_.q_tiles + visit.q_tile) * kTileM + thread * 2;
      mma::cp_async(mma::shared_address(shared_.row_terms[stage][thread * 2]),
                    args_.row_terms + row * 2);
    } else if (thread >= 64 && thread < 64 + kTileN / 2 && visit.pattern != kFull) {
      const int key = (thread - 64) * 2;
      mma::cp_async(mma::shared_address(&shared_.pattern[stage][key]),
                    params_.lists.patterns + std::int64_t{visit.pattern} * kTileKeys +
                        work_.part * kTileN + key);
    }
  }
  __device__ __forceinline__ void load_dout(const Visit& visit) const {
    dout_tile_.template load<kTileM, kThreads>(
        mma::head_rows<const T>(params_.dout, visit.head, params_.tokens_q), visit.q_tile * kTileM);
  }

  /// p = Pᵀ of a visit whose Q, row terms and pattern are in `stage`.
  __device__ __forceinline__ void compute_p(Scores& p, const Visit& visit, int stage) const {
    scores_.multiply(p, k_tile_, q_stage(stage));
    if (capped()) cap_scores<32>(&p[0][0][0], params_.softcap);
    if (visit.pattern != kFull) {
      scores_.mask(p, [&](int key) {
        const std::uint64_t seen = shared_.pattern[stage][key];
        return [seen](int query) { return (seen >> query & 1) == 0; };
      });
    }
    scores_.exponentiate(p, shared_.row_terms[stage], scale_log2_);
  }

  /// ds = dSᵀ. Stores P and dS for the other warps.
  __device__ __forceinline__ void compute_ds(Scores& ds, const Scores& p, int stage) const {
    scores_.multiply(ds, v_tile_, dout_tile_);
    scores_.store(p, p_tile_);
    scores_.differentiate(ds, p, shared_.row_terms[stage]);
    if (capped()) {
      scores_.apply_slopes(ds, p, shared_.row_terms[stage], params_.softcap.cap_log2);
    }
    scores_.store(ds, ds_tile_);
  }

  /// The visit's query tile in dq_accum and dq_semaphores, and the additions to it before this
  /// CTA's.
  __device__ __forceinline__ int dq_index(const Visit& visit) const {
    return visit.head * args_.q_tiles + visit.q_tile;
  }
  __device__ __forceinline__ std::int32_t prior_adds(const Visit& visit) const {
    return visit.prior_adds * kParts + work_.part;
  }

  /// Adds this part's share of the visit's dQ to the accumulator; if ordered, after all additions
  /// before it.
  __device__ __forceinline__ void add_dq(const Visit& visit) const {
    float dq[Dq::kCount][4];
    mma::gemm_dq<Shape>(dq, dq_left_, dq_right_);
    const int index = dq_index(visit);
    if (params_.ordered) {
      if (threadIdx.x == 0) wait_dq_semaphore(args_.dq_semaphores + index, prior_adds(visit));
      __syncthreads();
    }
    Dq::add(args_.dq_accum, index, dq);
    if (params_.ordered) __threadfence();  // before publish_dq, behind the caller's barrier
  }
  __device__ __forceinline__ void publish_dq(const Visit& visit) const {
    if (threadIdx.x != 0) return;
    release_dq_semaphore(args_.dq_semaphores + dq_index(visit), prior_adds(visit) + 1);
  }

  __device__ __forceinline__ void add_to_accumulators(const KeySum& dk, const KeySum& dv) const {
    const std::int64_t split =
        std::int64_t{work_.kv_head} * params_.lists.split_tiles + work_.item.split;
    const std::int64_t place = (split * kParts + work_.part) * 2;
    Dk::add(args_.dkv_accum, place, dk);
    Dk::add(args_.dkv_accum, place + 1, dv);
  }

  /// Stores dK and dV through the tiles of K and V, which nobody reads any more.
  __device__ __forceinline__ void overwrite(const KeySum& dk, const KeySum& dv) const {
    const int thread = static_cast<int>(threadIdx.x);
    Dk::template stage<T>(dk, params_.scale, k_tile_);
    Dk::template stage<T>(dv, 1, v_tile_);
    __syncthreads();
    mma::copy_rows<kTileN, kThreads>(k_tile_, key_rows<T>(params_.dk), key_begin_, thread);
    mma::copy_rows<kTileN, kThreads>(v_tile_, key_rows<T>(params_.dv), key_begin_, thread);
  }

  const BackwardKernelArgs& args_;
  const BackwardParams& params_;
  Tiles& shared_;
  const KeyTileWork& work_;  ///< in shared memory, as registers are short
  const KeyTile& keys_;
  int key_begin_;
  mma::ScoreWarp<Shape> scores_;
  float scale_log2_;  ///< 1 with a softcap: capped scores are in the log2 domain
  mma::SharedTile<kDim> k_tile_, v_tile_, q_tile_, dout_tile_;
  mma::SharedTile<kTileM> p_tile_, ds_tile_;
  mma::MatrixAddress<kTileM> dq_left_;  ///< the warp's operands of dQ = dS · K
  mma::MatrixAddress<kDim> dq_right_;
};

/// One CTA per part of a work item: dK and dV of kTileN keys of one KV head, summed over its query
/// heads, and what these keys add to dQ.
template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    backward_kernel(const __grid_constant__ BackwardKernelArgs args) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<typename Shape::Tiles*>(shared_bytes);
  take_work<Shape>(args, shared);
  const KeyTilePart<Shape> part(args, shared);
  // Ordered: an empty part counts its (zero) additions all the same, as others wait for them.
  if (part.is_empty() && !args.params.ordered) return;
  typename KeyTilePart<Shape>::KeySum dk = {};
  typename KeyTilePart<Shape>::KeySum dv = {};
  part.load_first();
  for (unsigned i = 0; shared.visits[i % 4].head >= 0; ++i) part.visit(i, dk, dv);
  part.write(dk, dv);
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
