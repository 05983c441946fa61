#pragma once

#include "attention/kernels/slice/sm90/forward_consumer.cuh"
#include "attention/kernels/slice/sm90/forward_producer.cuh"

// A consumer warpgroup computes a work tile again whose row maxima should have moved
// (ForwardShape::kRepeats). It is alone: the pipeline has ended for it, but may not have for the
// other warpgroups of the cluster, so it loads K and V itself, a sub-tile each to its own rows of
// the two stages of Q.
namespace longca::slice::sm90 {

template <typename Shape>
struct Repeater {
  using T = typename Shape::T;
  static_assert(Shape::kQueryStages == 2 && Shape::kQueriesInRegisters && Shape::kStepsPerTile == 1);
  static_assert(Shape::kRowColumnBytes == Shape::kKeyColumnBytes);  // as the descriptors have it

  ForwardConsumer<Shape>& consumer;
  const typename Shape::Repeat& tile;  ///< in shared memory
  const OutputRows output;
  std::uint32_t phase = 0;

  __device__ unsigned char* buffer(int sub_tile) const {
    return consumer.shared.q[sub_tile] + consumer.group * (kGroupRows * 128);
  }

  /// Loads Q of the rows as A operands. Beyond `value_dim`, which is that of Q too, there are zeros.
  __device__ __forceinline__ void load_q() {
    const TensorArg& q = output.args.params.q;
    const int thread = opaque_thread();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = accumulator_row(thread, r);
      const T* from = static_cast<const T*>(q.data) + output.token(row) * q.token_stride +
                      output.head(row) * q.head_stride + thread % 4 * 2;
      const bool exists = output.token(row) < output.token_end();
#pragma unroll
      for (int i = 0; i < Shape::kDim / 8; ++i) {
        const bool reads = exists && 8 * i < output.args.value_dim;
        consumer.q[i / 2 * 4 + i % 2 * 2 + r] =
            reads ? *reinterpret_cast<const std::uint32_t*>(from + 8 * i) : 0;
      }
    }
  }

  /// Loads the sub-tiles from keys k0 and k1 once all warps have read the buffers, and waits.
  __device__ __forceinline__ void load(const CUtensorMap& map, int k0, int k1) {
    output.template sync<Shape>();
    std::uint64_t* full = &consumer.shared.repeats.full[consumer.group];
    if (opaque_thread() == 0) {
      const int kv_head = tile.work.head / (output.args.params.heads_q / output.args.params.heads_k);
      ptx::mbarrier_arrive_expect_tx(full, Shape::kKeyBytes);
#pragma unroll 1
      for (int i = 0; i < 2 * Shape::kColumns; ++i) {
        const int column = i / 2;
        ptx::tma_load(buffer(i % 2) + column * Shape::kRowColumnBytes, &map, full, column * 64,
                      kv_head, i % 2 == 0 ? k0 : k1);
      }
    }
    ptx::mbarrier_wait(full, phase);
    phase ^= 1;
  }

  /// The same operations as ForwardConsumer::step's and narrow_step's, in their order, so that the
  /// result has the bits that it has where row maxima may move from the start.
  __device__ __forceinline__ void step(int k0, int k1, int pattern, float slack) {
    auto& s = consumer.s;
    load(output.args.k, k0, k1);
    ptx::warpgroup_fence_operand(s);
    ptx::warpgroup_arrive();
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      auto& part = *reinterpret_cast<float(*)[kSubTileKeys / 2]>(s + i * (kSubTileKeys / 2));
      const std::uint64_t k = ptx::smem_descriptor(ptx::shared_address(buffer(i)), 16);
#pragma unroll
      for (int step = 0; step < Shape::kDim / 16; ++step) {
        const int offset = (step / 4 * Shape::kKeyColumnBytes + step % 4 * 32) / 16;
        step == 0
            ? ptx::wgmma_m64n64_rs<T, ptx::Major::k, false>(part, consumer.q, k)
            : ptx::wgmma_m64n64_rs<T, ptx::Major::k, true>(part, consumer.q + 4 * step, k + offset);
      }
    }
    ptx::warpgroup_commit_group();
    ptx::warpgroup_wait_group<0>();
    ptx::warpgroup_fence_operand(s);
    if (pattern >= 0) {
      const int shift = output.args.pack_shift;
      const int thread = opaque_thread();
      const RowIntervals* intervals =
          output.args.params.lists.patterns +
          static_cast<std::int64_t>(pattern) * (kGroupRows >> shift);
      mask_scores<kTileKeys>(s, intervals[accumulator_row(thread, 0) >> shift],
                         intervals[accumulator_row(thread, 1) >> shift]);
    }
    float o_scale[2];
    if (consumer.template masked_softmax<kTileKeys>(o_scale, slack)) rescale_o(consumer.o, o_scale);
    consumer.template pack_probabilities<kTileKeys>();
    load(output.args.v, k0, k1);
    ptx::warpgroup_fence_operand(consumer.o);
    ptx::warpgroup_fence_operand(consumer.p);
    ptx::warpgroup_arrive();
#pragma unroll
    for (int step = 0; step < kTileKeys / 16; ++step) {
      const std::uint64_t v = ptx::smem_descriptor(ptx::shared_address(buffer(step / 4)),
                                                   Shape::kKeyColumnBytes);
      ptx::wgmma_rs_add<T>(consumer.o, consumer.p + 4 * step, v + step % 4 * (16 * 128 / 16));
    }
    ptx::warpgroup_commit_group();
    ptx::warpgroup_wait_group<0>();
    ptx::warpgroup_fence_operand(consumer.o);
  }

  __device__ __forceinline__ void run() {
    const DeviceTileLists& lists = output.args.params.lists;
    const PartialTile* partial = lists.partial + tile.partial_begin;
    const int narrow = tile.work.narrow_tiles;
    const int full_end = narrow + tile.work.full_tiles;
    const int count = tile.work.partial_count + tile.work.full_tiles;
    FullRunCursor runs(lists.runs + tile.runs_begin,
                       tile.work.full_tiles > 0 ? lists.runs[tile.runs_begin] : FullRun{},
                       tile.work.full_tiles);
    load_q();
#pragma unroll
    for (float& x : consumer.o) x = 0;
    consumer.softmax = SoftmaxState{};
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      int k0 = 0, k1 = 0, pattern = kFull;
      const bool full = i >= narrow && i < full_end;
      if (full) {
        k0 = runs.take();
        k1 = runs.take();
      } else {
        const PartialTile& from = partial[i < narrow ? i : i - tile.work.full_tiles];
        k0 = from.k_begin[0];
        // Past the end are zeros, which patterns leave out.
        k1 = from.k_begin[1] == kAbsent ? output.args.params.tokens_k : from.k_begin[1];
        pattern = from.pattern[consumer.group];
      }
      if (pattern == kNone) continue;
      step(k0, k1, pattern, full && i > narrow ? kMaxTileSumLog2 : kMaxSlack);
    }
    output.template sync<Shape>();  // all warps have read the buffers
  }
};

template <typename Shape>
__device__ __forceinline__ void repeat_work_tile(ForwardConsumer<Shape>& consumer) {
  const ForwardKernelArgs& args = consumer.args;
  // TMA has read both stages of Q, nothing else is to, and thread 0 has written what to repeat.
  if (opaque_thread() == 0) ptx::bulk_wait_group_read();
  ptx::fence_proxy_async_shared();
  ptx::named_barrier_sync(warpgroup_barrier<Shape>(consumer.group), 128);
  const typename Shape::Repeat& tile = consumer.shared.repeats.tile[consumer.group];
  const OutputRows output{args, tile.work, consumer.group};
  Repeater<Shape>{consumer, tile, output}.run();
  if constexpr (Shape::kEarlier) {
    const int stage = consumer.item.index;
    fetch_earlier<Shape>(output, consumer.shared.q[stage],
                         &consumer.shared.earlier_full[stage][consumer.group]);
  }
  consumer.store(output, false);
}

}  // namespace longca::slice::sm90
