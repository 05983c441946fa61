#include "attention/cpu/backward.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/error.h"
#include "core/rounding.h"

namespace longca::cpu {
namespace {

/// out = factor · values, or out += factor · values.
template <typename T>
void write_elements(const TensorView& out, std::int64_t head, Range rows, const float* values,
                    std::int64_t stride, float factor, bool add) {
  for (std::int64_t t = rows.begin; t < rows.end; ++t, values += stride) {
    T* to = out.row<T>(t, head);
    if (add) {
      for (std::int64_t k = 0; k < out.dim; ++k)
        to[k] = static_cast<T>(static_cast<float>(to[k]) + values[k] * factor);
    } else {
      for (std::int64_t k = 0; k < out.dim; ++k) to[k] = static_cast<T>(values[k] * factor);
    }
  }
}

void write_rows(const TensorView& out, std::int64_t head, Range rows, const float* values,
                std::int64_t stride, float factor, bool add) {
  with_type_of(out.dtype, [&]<typename T>(T) {
    write_elements<T>(out, head, rows, values, stride, factor, add);
  });
}

/// One head of a float32 buffer [heads_q, tokens_q, columns] as a tensor [tokens_q, 1, columns].
TensorView sums_view(const HostBuffer& buffer, const Problem& problem, std::int64_t columns,
                     int head) {
  return {buffer.as<float>() + head * problem.tokens_q * columns,
          DType::float32,
          problem.tokens_q,
          1,
          columns,
          columns,
          columns};
}

}  // namespace

Backward::Backward(const BlockedSetup& setup)
    : setup_(setup),
      chunks_(ceil_div(setup.problem.tokens_k, kChunkKeys)),
      scratch_words_(BackwardScratch::words(setup)) {
  for (const HeadTiles& head : setup.heads) heads_.push_back(plan_visits(head, chunks_));
  for (int head = 0; head < setup.problem.heads_q; ++head) {
    tile_offsets_.push_back(tiles_.size());
    const auto tiles = static_cast<std::int32_t>(setup.tiles(head).tiles.size());
    for (std::int32_t tile = 0; tile < tiles; ++tile) tiles_.push_back({head, tile});
  }
  dq_semaphore_ = std::vector<std::atomic<std::int32_t>>(tiles_.size());
  const std::int64_t rows = setup.problem.heads_q * setup.problem.tokens_q;
  delta_ = HostBuffer(rows * 4);
  if (setup.problem.dtype != DType::float32 && !setup.problem.accumulate) {
    dq_ = HostBuffer(rows * setup.packing.columns() * 4);
  }
  scratch_ = HostBuffer(setup.pool->threads() * scratch_words_ * 4);
}

Backward::HeadVisits Backward::plan_visits(const HeadTiles& head, std::int64_t chunks) {
  HeadVisits out;
  out.visit_counts.assign(head.tiles.size(), 0);
  std::vector<std::vector<Visit>> by_chunk(static_cast<std::size_t>(chunks));
  for (std::size_t t = 0; t < head.tiles.size(); ++t) {
    const QueryTile& tile = head.tiles[t];
    for (std::int64_t i = tile.first; i < tile.last;) {
      const std::int32_t chunk = head.panels[static_cast<std::size_t>(i)].panel / kChunkPanels;
      std::int64_t last = i + 1;
      while (last < tile.last &&
             head.panels[static_cast<std::size_t>(last)].panel / kChunkPanels == chunk)
        ++last;
      by_chunk[static_cast<std::size_t>(chunk)].push_back(
          {static_cast<std::int32_t>(t), out.visit_counts[t]++, i, last});
      i = last;
    }
  }
  out.offsets.push_back(0);
  for (const auto& visits : by_chunk) {
    out.visits.insert(out.visits.end(), visits.begin(), visits.end());
    out.offsets.push_back(static_cast<std::int64_t>(out.visits.size()));
  }
  return out;
}

const Backward::HeadVisits& Backward::visits(int query_head) const {
  return heads_[static_cast<std::size_t>(setup_.mask_head(query_head))];
}

std::int64_t Backward::bytes() const {
  std::int64_t visits = 0;
  for (const HeadVisits& head : heads_)
    visits += static_cast<std::int64_t>(head.visits.capacity() * sizeof(Visit));
  return delta_.bytes() + dq_.bytes() + scratch_.bytes() + visits +
         static_cast<std::int64_t>(tiles_.capacity() * sizeof(HeadTile) +
                                   dq_semaphore_.capacity() * sizeof(dq_semaphore_[0]));
}

void Backward::run(const BackwardArgs& args) {
  LONGCA_CHECK(args.dq.dtype == DType::float32 || dq_.bytes() > 0 || tiles_.empty(),
               "dq is {}, but the problem was planned for accumulation in float32",
               to_string(args.dq.dtype));
  const auto scratch_of = [&](int worker) {
    Word* base = scratch_.as<Word>() + worker * scratch_words_;
    return BackwardScratch::carve(base, setup_);
  };
  const auto tiles = static_cast<std::int64_t>(tiles_.size());
  setup_.pool->parallel_for(tiles, [&](std::int64_t item, int worker) {
    prepare_tile(args, tiles_[static_cast<std::size_t>(item)], scratch_of(worker));
  });
  if (args.dsink != nullptr) {
    setup_.pool->parallel_for(setup_.problem.heads_q, [&](std::int64_t head, int) {
      add_sink_gradient(args, static_cast<int>(head));
    });
  }
  const int heads_k = setup_.problem.heads_k;
  setup_.pool->parallel_for(chunks_ * heads_k, [&](std::int64_t item, int worker) {
    run_chunk(args, static_cast<int>(item % heads_k), item / heads_k, scratch_of(worker));
  });
}

/// Delta of rows, by the products and in the order of dP: a row of one key, whose O is its V, has
/// delta = dP to the bit and so the dS = 0 that it should have. Rounded otherwise, delta would
/// leave noise there that is as large as the terms of the sum, not as the sum.
void Backward::compute_delta(const BackwardArgs& args, int head, Range rows,
                             const BackwardScratch& s) {
  float* out = delta_.as<float>() + head * setup_.problem.tokens_q;
  const Packing& values = setup_.value_packing;
  if (args.o.dtype != args.dout.dtype)
    return row_dots(args.dout, args.o, head, rows, out + rows.begin);
  for (std::int64_t first = rows.begin; first < rows.end; first += kPanelKeys) {
    const Range tokens{first, std::min(first + kPanelKeys, rows.end)};
    values.transposed(args.dout, head, tokens, s.k_transposed);
    values.transposed(args.o, head, tokens, s.v_transposed);
    std::array<float, kPanelKeys> sums;
    setup_.kernels->dots({s.k_transposed, s.v_transposed, values.dim_words(), sums.data()});
    std::copy_n(sums.data(), tokens.size(), out + first);
  }
}

/// dsink of a head: −Σ exp(sink − lse) delta over its rows, whose deltas are known. lse is −∞ where
/// a row has neither key nor sink.
void Backward::add_sink_gradient(const BackwardArgs& args, int head) const {
  const std::int64_t rows = setup_.problem.tokens_q;
  const float* lse = args.lse.head(head);
  const float* delta = delta_.as<float>() + head * rows;
  double sum = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (lse[row] == -std::numeric_limits<float>::infinity()) continue;
    sum -=
        static_cast<double>(std::exp(args.sink[head] - lse[row])) * static_cast<double>(delta[row]);
  }
  const float before = args.accumulate ? args.dsink[head] : 0.0F;
  args.dsink[head] = before + static_cast<float>(sum);
}

void Backward::prepare_tile(const BackwardArgs& args, HeadTile at, const BackwardScratch& s) {
  const Range rows = setup_.tiles(at.head).tiles[static_cast<std::size_t>(at.tile)].rows;
  compute_delta(args, at.head, rows, s);
  semaphore(at).store(0, std::memory_order_relaxed);
  const bool seen = visits(at.head).visit_counts[static_cast<std::size_t>(at.tile)] > 0;
  if (!seen && !args.accumulate) {
    const std::vector<float> zeros(static_cast<std::size_t>(args.dq.dim));
    write_rows(args.dq, at.head, rows, zeros.data(), 0, 1.0F, false);
  }
}

void Backward::run_chunk(const BackwardArgs& args, int kv_head, std::int64_t chunk,
                         const BackwardScratch& s) {
  const Range keys{chunk * kChunkKeys, std::min((chunk + 1) * kChunkKeys, setup_.problem.tokens_k)};
  const std::int64_t columns = setup_.packing.columns();
  const std::int64_t value_columns = setup_.value_packing.columns();
  std::fill_n(s.dk, kChunkKeys * columns, 0.0F);
  std::fill_n(s.dv, kChunkKeys * value_columns, 0.0F);
  pack_chunk(args, kv_head, keys, s);
  const int group = setup_.problem.group_size();
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const HeadTiles& tiles = setup_.tiles(head);
    const HeadVisits& all = visits(head);
    for (std::int64_t v = all.offsets[static_cast<std::size_t>(chunk)];
         v < all.offsets[static_cast<std::size_t>(chunk) + 1]; ++v) {
      const Visit& visit = all.visits[static_cast<std::size_t>(v)];
      const QueryTile& tile = tiles.tiles[static_cast<std::size_t>(visit.tile)];
      pack_tile(args, head, tile.rows, s);
      backward_tile(
          setup_,
          {tiles, tile, {tiles.panels.data() + visit.first, tiles.panels.data() + visit.last}}, s);
      add_dq(args, {head, visit.tile}, visit.order, s);
    }
  }
  write_rows(args.dk, kv_head, keys, s.dk, columns, setup_.problem.scale(), args.accumulate);
  write_rows(args.dv, kv_head, keys, s.dv, value_columns, 1.0F, args.accumulate);
}

void Backward::pack_chunk(const BackwardArgs& args, int kv_head, Range keys,
                          const BackwardScratch& s) const {
  const Packing& packing = setup_.packing;
  const Packing& values = setup_.value_packing;
  for (std::int64_t panel = 0; panel < kChunkPanels; ++panel) {
    const std::int64_t first = keys.begin + panel * kPanelKeys;
    if (first >= keys.end) break;
    const Range tokens{first, std::min(first + kPanelKeys, keys.end)};
    packing.transposed(args.k, kv_head, tokens, s.k_transposed + panel * packing.panel_words());
    values.transposed(args.v, kv_head, tokens, s.v_transposed + panel * values.panel_words());
  }
  packing.stacked(args.k, kv_head, keys, kChunkKeys, s.k_stacked);
}

void Backward::pack_tile(const BackwardArgs& args, int head, Range rows,
                         const BackwardScratch& s) const {
  const Packing& packing = setup_.packing;
  const Packing& values = setup_.value_packing;
  const std::int64_t padded = round_up(rows.size(), kGroupRows);
  packing.rows(args.q, head, rows, padded, s.q_rows);
  values.rows(args.dout, head, rows, padded, s.do_rows);
  if (!packing.rows_are_stacked()) {
    packing.stacked(args.q, head, rows, padded, s.q_stacked);
    values.stacked(args.dout, head, rows, padded, s.do_stacked);
  }
  // Padding rows contribute nothing: P is 0 or 1 but dO is 0, and dS is 0.
  std::fill_n(s.lse_log2, kTileRows, 0.0F);
  std::fill_n(s.delta, kTileRows, 0.0F);
  const float* lse = args.lse.head(head) + rows.begin;
  std::transform(lse, lse + rows.size(), s.lse_log2,
                 [](float x) { return x * std::numbers::log2e_v<float>; });
  std::copy_n(delta_.as<float>() + head * setup_.problem.tokens_q + rows.begin, rows.size(),
              s.delta);
}

void Backward::add_dq(const BackwardArgs& args, HeadTile at, std::int32_t order,
                      const BackwardScratch& s) {
  std::atomic<std::int32_t>& now = semaphore(at);
  for (auto seen = now.load(std::memory_order_acquire); seen != order;
       seen = now.load(std::memory_order_acquire)) {
    now.wait(seen, std::memory_order_acquire);
  }
  sum_dq(args, at, order, s);
  now.store(order + 1, std::memory_order_release);
  now.notify_all();
}

/// dQ of a tile += scale · this chunk's part; the first chunk overwrites, the last converts to dq.
void Backward::sum_dq(const BackwardArgs& args, HeadTile at, std::int32_t order,
                      const BackwardScratch& s) {
  const Range rows = setup_.tiles(at.head).tiles[static_cast<std::size_t>(at.tile)].rows;
  const std::int64_t columns = setup_.packing.columns();
  const float scale = setup_.problem.scale();
  const bool first = order == 0;
  if (args.dq.dtype == DType::float32) {
    return write_rows(args.dq, at.head, rows, s.dq, columns, scale, !first || args.accumulate);
  }
  const TensorView sums = sums_view(dq_, setup_.problem, columns, at.head);
  write_rows(sums, 0, rows, s.dq, columns, scale, !first);
  if (order + 1 == visits(at.head).visit_counts[static_cast<std::size_t>(at.tile)]) {
    write_rows(args.dq, at.head, rows, sums.row<float>(rows.begin, 0), columns, 1.0F, false);
  }
}

}  // namespace longca::cpu
