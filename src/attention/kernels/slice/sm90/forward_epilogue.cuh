#pragma once

#include "attention/kernels/common/logarithms.h"
#include "attention/kernels/common/sink.cuh"
#include "attention/kernels/slice/sm90/forward_shape.cuh"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/tma.cuh"
#include "attention/kernels/slice/sm90/softmax.cuh"

// Writes O and LSE of a consumer warpgroup's 64 rows.
namespace longca::slice::sm90 {

/// Maps the rows of a warpgroup to tokens and heads.
struct OutputRows {
  const ForwardKernelArgs& args;
  const WorkTile& work;
  int group;

  __device__ int tokens() const { return kGroupRows >> args.pack_shift; }
  __device__ int token_begin() const { return work.row_begin + group * tokens(); }
  __device__ int token_end() const { return min(work.row_end, args.params.tokens_q); }
  __device__ int token(int row) const { return token_begin() + (row >> args.pack_shift); }
  __device__ int head(int row) const { return work.head + (row & ((1 << args.pack_shift) - 1)); }
  __device__ float* lse(int row) const {
    return args.params.lse + head(row) * args.params.lse_head_stride + token(row);
  }
  template <typename Element>
  __device__ Element* o(int row) const {
    return static_cast<Element*>(args.params.o.data) + token(row) * args.params.o.token_stride +
           head(row) * args.params.o.head_stride;
  }
  __device__ const float* earlier_lse(int row) const {
    const EarlierArg& earlier = args.params.earlier;
    return earlier.lse + head(row) * earlier.lse_head_stride + token(row);
  }
  template <typename Shape>
  __device__ void sync() const {
    ptx::named_barrier_sync(warpgroup_barrier<Shape>(group), 128);
  }
  /// Synchronizes them too; whether `flag` is true in any of the threads.
  template <typename Shape>
  __device__ bool any(bool flag) const {
    return ptx::named_barrier_or(warpgroup_barrier<Shape>(group), 128, __any_sync(~0u, flag));
  }
};

/// The row, among the warpgroup's 64, of a thread's accumulators r ∈ {0, 1}.
__device__ __forceinline__ int accumulator_row(int thread, int r) {
  return thread / 32 * 16 + thread % 32 / 4 + 8 * r;
}
__device__ __forceinline__ int accumulator_row(int r) {
  return accumulator_row(static_cast<int>(threadIdx.x % 128), r);
}

/// This thread's index in its warpgroup, opaque to the compiler, so that what depends on it is
/// computed where it is used. What depends on threadIdx is computed once, and kept in registers
/// that the loops need.
__device__ __forceinline__ int opaque_thread() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread % 128;
}

/// Adds the earlier result of a row to its softmax: scales `o_scale`, replaces `lse`, and returns
/// the factor of the earlier O. All four threads of the row call it.
__device__ __forceinline__ float weigh_earlier(const OutputRows& output, int row, float& lse,
                                               float& o_scale) {
  const bool exists = output.token(row) < output.token_end();
  const float before = exists ? *output.earlier_lse(row) : -INFINITY;
  __syncwarp();  // LSE may lie there
  const float max = fmaxf(lse, before);
  const float base = max == -INFINITY ? 0 : max;
  const float here = __expf(lse - base);
  const float there = __expf(before - base);
  const float sum = here + there;
  const float scale = sum == 0 ? 0 : __fdividef(1, sum);
  o_scale *= here * scale;
  lse = base + logf(sum);
  return there * scale;
}

/// Begins to load the earlier O of a consumer warpgroup's 64 rows to where O will be staged: the
/// stage of Q, which is in registers by now. Rows past the end of the work tile may be another
/// one's.
template <typename Shape>
__device__ __forceinline__ void fetch_earlier(const OutputRows& output, unsigned char* buffer,
                                              std::uint64_t* barrier) {
  static_assert(Shape::kQueriesInRegisters);
  ptx::fence_proxy_async_shared();  // this warp's reads of Q, before TMA writes there
  output.template sync<Shape>();
  const int thread = opaque_thread();
  if (thread < kGroupRows && output.token(thread) < output.token_end()) {
    ptx::prefetch_l2(output.earlier_lse(thread));
  }
  if (thread > 0) return;
  ptx::mbarrier_arrive_expect_tx(barrier, kGroupRows * 128 * Shape::kValueColumns);
#pragma unroll
  for (int column = 0; column < Shape::kValueColumns; ++column) {
    ptx::tma_load(buffer + output.group * (kGroupRows * 128) + column * Shape::kRowColumnBytes,
                  &output.args.earlier, barrier, column * 64, output.work.head,
                  output.token_begin());
  }
}

/// Writes LSE of a thread's two rows. `lane`: of its warp.
__device__ __forceinline__ void store_lse(const OutputRows& output, int lane, const int (&rows)[2],
                                          const float (&lse)[2]) {
  if (lane % 4 == 0) {
    float* to[2] = {output.lse(rows[0]), output.lse(rows[1])};
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (output.token(rows[r]) < output.token_end()) *to[r] = lse[r];
    }
  }
}

/// Writes O = o / row sum and LSE, or their merge with the earlier result, which is in `buffer`
/// then. O goes through `buffer`, the stage of Q in shared memory: from there by TMA, which leaves
/// out tokens past the end of the tensor, or by the threads where the work tile ends before the box
/// and the tensor do. TMA may still be reading `buffer` on return
/// (ForwardConsumer::release_stored). With kUnchecked, returns whether any thread `repeats`: then O
/// is not written, and LSE only for the time being, or not where an earlier one may lie there.
template <typename Shape>
__device__ __forceinline__ bool store_output(const OutputRows& output, const SoftmaxState& state,
                                             float (&o)[Shape::kValueDim / 2],
                                             unsigned char* buffer, bool repeats) {
  using T = typename Shape::T;
  constexpr int kDim = Shape::kValueDim;
  const ForwardParams& params = output.args.params;
  // These shapes have no register left for the thread index: ptxas would serialize wgmma (C7511).
  constexpr bool kOpaque = Shape::kEarlier || Shape::kInTurn ||
                           (Shape::kCluster == 1 &&
                            (Shape::kWatchesRowMax || (Shape::kDim == 96 && !Shape::kUnchecked)));
  const int thread = kOpaque ? opaque_thread() : static_cast<int>(threadIdx.x % 128);
  const int lane = thread % 32;
  constexpr bool kLateLse = Shape::kUnchecked && Shape::kEarlier;
  // Both rows at a time: one behind the other, by branches, they take 500 cycles more.
  float o_scale[2];
  float lse[2];
  float keep[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float sum = quad_sum(state.row_sum[r]);
    o_scale[r] = sum != 0 ? __fdividef(1, sum) : 0;  // NaN, which is not 0, is to reach the result
    lse[r] = state.row_max[r] * kLn2 + __logf(sum);  // −∞ for a row that sees no key
  }
  // The same row either way, but ptxas allocates other registers.
  const auto row_of = [thread](int r) {
    return kOpaque ? accumulator_row(thread, r) : accumulator_row(r);
  };
  if (params.sink != nullptr) {
#pragma unroll
    for (int r = 0; r < 2; ++r) add_sink(params.sink[output.head(row_of(r))], lse[r], o_scale[r]);
  }
  if constexpr (Shape::kEarlier) {
#pragma unroll
    for (int r = 0; r < 2; ++r) keep[r] = weigh_earlier(output, row_of(r), lse[r], o_scale[r]);
  }
  if constexpr (!kLateLse) {
    const int rows[2] = {row_of(0), row_of(1)};
    store_lse(output, lane, rows, lse);
  }
  rescale_o(o, o_scale);

  // O overwrites Q: once all warps are here, no wgmma reads this warpgroup's rows of it any more.
  if constexpr (!Shape::kQueriesInRegisters) output.template sync<Shape>();
  unsigned char* staged = buffer + output.group * (kGroupRows * 128);
  const int matrix_row = thread / 32 * 16 + lane % 16;
#pragma unroll
  for (int n = 0; n < kDim / 8; n += 2) {
    const int chunk = n % 8 + lane / 16;
    const std::uint32_t address =
        ptx::shared_address(staged + n / 8 * Shape::kRowColumnBytes + matrix_row * 128 +
                            (chunk ^ (matrix_row & 7)) * 16);
    if constexpr (Shape::kEarlier) {
      std::uint32_t earlier[4];
      ptx::ldmatrix_x4(earlier, address);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 pair = ptx::unpack<T>(earlier[i]);
        o[4 * n + 2 * i] += keep[i % 2] * pair.x;
        o[4 * n + 2 * i + 1] += keep[i % 2] * pair.y;
      }
    }
    ptx::stmatrix_x4(
        address, ptx::pack<T>(o[4 * n], o[4 * n + 1]), ptx::pack<T>(o[4 * n + 2], o[4 * n + 3]),
        ptx::pack<T>(o[4 * n + 4], o[4 * n + 5]), ptx::pack<T>(o[4 * n + 6], o[4 * n + 7]));
  }
  ptx::fence_proxy_async_shared();  // these stores, before thread 0's TMA store reads them
  if constexpr (Shape::kUnchecked) {
    if (output.template any<Shape>(repeats)) return true;
  } else {
    output.template sync<Shape>();
  }
  if constexpr (kLateLse) {
    const int rows[2] = {accumulator_row(opaque_thread(), 0), accumulator_row(opaque_thread(), 1)};
    store_lse(output, lane, rows, lse);
  }
  const bool whole = output.token_begin() + output.tokens() <= output.token_end() ||
                     output.token_end() == params.tokens_q;
  if (whole) {
    if (thread == 0) {
#pragma unroll
      for (int column = 0; column < Shape::kValueColumns; ++column) {
        ptx::tma_store(&output.args.o, staged + column * Shape::kRowColumnBytes, column * 64,
                       output.work.head, output.token_begin());
      }
      ptx::bulk_commit_group();
    }
  } else {
#pragma unroll 1
    for (int i = thread; i < kGroupRows * kDim / 8; i += 128) {
      const int row = i / (kDim / 8);
      const int chunk = i % (kDim / 8);
      const auto* from =
          staged + chunk / 8 * Shape::kRowColumnBytes + row * 128 + ((chunk % 8) ^ (row & 7)) * 16;
      if (output.token(row) < output.token_end() && chunk * 8 < output.args.value_dim) {
        *reinterpret_cast<int4*>(output.o<T>(row) + chunk * 8) =
            *reinterpret_cast<const int4*>(from);
      }
    }
    output.template sync<Shape>();
  }
  return false;
}

/// Merges o into the float32 O and LSE in device memory, which hold the result over other keys. No
/// other CTA has these rows.
template <typename Shape>
__device__ __forceinline__ void merge_output(const OutputRows& output, const SoftmaxState& state,
                                             float (&o)[Shape::kValueDim / 2]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = accumulator_row(r);
    const float sum = quad_sum(state.row_sum[r]);
    const float* sinks = output.args.params.sink;
    const float sink = sinks != nullptr ? sinks[output.head(row)] : -INFINITY;
    const bool sees = output.token(row) < output.token_end() && (sum != 0 || sink != -INFINITY);
    const float before = sees ? *output.lse(row) : 0;
    __syncwarp();  // all four threads of the row have read LSE
    float here = sum != 0 ? state.row_max[r] * kLn2 + logf(sum) : -INFINITY;
    float of_keys = sum != 0 ? __fdividef(1, sum) : 0;
    if (sinks != nullptr) add_sink(sink, here, of_keys);
    // `here` is finite, or NaN, which fmaxf would drop.
    const float merged = fmaxf(here, before) + __logf(1 + __expf(-fabsf(here - before)));
    if (sees && lane % 4 == 0) *output.lse(row) = merged;
    const float keep = __expf(before - merged);
    const float factor = __expf(here - merged) * of_keys;
    auto* to = reinterpret_cast<float2*>(output.o<float>(row)) + lane % 4;
#pragma unroll
    for (int n = 0; n < Shape::kValueDim / 8; ++n) {
      const bool stores = sees && 8 * n < output.args.value_dim;
      float2 sums{};
      // Where LSE is −∞, O may hold anything.
      if (stores && before != -INFINITY) sums = to[4 * n];
      sums.x = sums.x * keep + o[4 * n + 2 * r] * factor;
      sums.y = sums.y * keep + o[4 * n + 2 * r + 1] * factor;
      if (stores) to[4 * n] = sums;
    }
  }
  // All warps have read Q and work from the stage that thread 0 marks empty.
  output.template sync<Shape>();
}

}  // namespace longca::slice::sm90
