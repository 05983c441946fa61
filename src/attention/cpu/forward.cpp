#include "attention/cpu/forward.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "attention/cpu/tile_plan.h"
#include "core/rounding.h"

namespace longca::cpu {
namespace {

/// Initializes a row from its accumulated result over other keys, if any, which acts as one more
/// key of score lse and value o.
void start_row(const ForwardArgs& args, float scale_log2, std::int64_t head, std::int64_t row,
               int i, float* o, SoftmaxState& state) {
  if (!args.accumulate || args.lse.head(head)[row] == -std::numeric_limits<float>::infinity())
    return;
  std::copy_n(args.o.row<float>(row, head), args.o.dim, o);
  state.max[i] = args.lse.head(head)[row] * std::numbers::log2e_v<float> / scale_log2;
  state.sum[i] = 1;
}

template <typename T>
void write_row(const TensorView& out, std::int64_t head, std::int64_t row, const float* o,
               float factor) {
  T* to = out.row<T>(row, head);
  for (std::int64_t k = 0; k < out.dim; ++k) to[k] = static_cast<T>(o[k] * factor);
}

/// log2 of a sum that is known by its log2, and of a sink beside it.
double with_sink(double log2_sum, float sink) {
  const double log2_sink = static_cast<double>(sink) * std::numbers::log2e;
  const double larger = std::max(log2_sum, log2_sink);
  return larger + std::log2(std::exp2(log2_sum - larger) + std::exp2(log2_sink - larger));
}

void finish_row(const ForwardArgs& args, float scale_log2, std::int64_t head, std::int64_t row,
                int i, const float* o, const SoftmaxState& state) {
  const float sum = state.sum[i];
  float factor = sum > 0 || std::isnan(sum) ? 1.0F / sum : 0.0F;
  double log2_sum = static_cast<double>(state.max[i]) * static_cast<double>(scale_log2) +
                    std::log2(static_cast<double>(sum));
  // A sink of −∞ is none; in a row without keys, the factor would be that of −∞ − −∞.
  if (args.sink != nullptr && args.sink[head] != -std::numeric_limits<float>::infinity()) {
    const double log2_keys = std::exchange(log2_sum, with_sink(log2_sum, args.sink[head]));
    factor *= static_cast<float>(std::exp2(log2_keys - log2_sum));
  }
  with_type_of(args.o.dtype, [&]<typename T>(T) { write_row<T>(args.o, head, row, o, factor); });
  args.lse.head(head)[row] = static_cast<float>(log2_sum * std::numbers::ln2);
}

}  // namespace

/// One thread's buffers.
struct Forward::Scratch {
  Word* queries;         ///< [kTileRows, row stride]
  float* scores;         ///< [8, kScoreStride]; overwritten by float32 weights
  Word* weights;         ///< pairs: [8, kScoreStride / 2]
  float* o;              ///< [kTileRows, columns of v] sums of weights · values
  SoftmaxState* states;  ///< [kTileGroups]
};

Forward::Forward(const BlockedSetup& setup)
    : setup_(setup), panels_(ceil_div(setup.problem.tokens_k, kPanelKeys)) {
  const Packing& packing = setup.packing;
  key_words_ = panels_ * packing.panel_words();
  const Packing& values = setup.value_packing;
  value_words_ = values.token_words(panels_ * kPanelKeys) * values.columns();
  constexpr std::int64_t kStateWords = kTileGroups * std::int64_t{sizeof(SoftmaxState)} / 4;
  scratch_words_ = round_up(kTileRows * packing.row_stride() + kGroupRows * kScoreStride * 2 +
                                kTileRows * values.columns() + kStateWords,
                            1024) +
                   16;
  keys_ = HostBuffer(setup.problem.heads_k * key_words_ * 4);
  values_ = HostBuffer(setup.problem.heads_k * value_words_ * 4);
  scratch_ = HostBuffer(setup.pool->threads() * scratch_words_ * 4);
  for (int head = 0; head < setup.problem.heads_q; ++head) {
    const HeadTiles& tiles = setup.tiles(head);
    const auto first = static_cast<std::ptrdiff_t>(items_.size());
    for (std::size_t tile = 0; tile < tiles.tiles.size(); ++tile) {
      items_.push_back({head, static_cast<std::int32_t>(tile)});
    }
    // By head, so that threads share its keys in the cache, then longest tile first for balance.
    std::stable_sort(items_.begin() + first, items_.end(), [&](const Item& a, const Item& b) {
      const auto panels = [&](const Item& item) {
        return tiles.panels_of(tiles.tiles[static_cast<std::size_t>(item.tile)]).size();
      };
      return panels(a) > panels(b);
    });
  }
}

std::int64_t Forward::bytes() const {
  return keys_.bytes() + values_.bytes() + scratch_.bytes() +
         static_cast<std::int64_t>(items_.capacity() * sizeof(Item));
}

Forward::Scratch Forward::scratch_of(int worker) const {
  const Packing& packing = setup_.packing;
  Word* at = scratch_.as<Word>() + worker * scratch_words_;
  Scratch s{};
  s.queries = at;
  s.scores = s.queries + kTileRows * packing.row_stride();
  s.weights = setup_.kernels->pairs ? s.scores + kGroupRows * kScoreStride : s.scores;
  s.o = s.scores + 2 * kGroupRows * kScoreStride;
  s.states = reinterpret_cast<SoftmaxState*>(s.o + kTileRows * setup_.value_packing.columns());
  return s;
}

void Forward::run(const ForwardArgs& args) {
  setup_.pool->parallel_for(setup_.problem.heads_k * panels_, [&](std::int64_t item, int) {
    pack_panel(args, item / panels_, item % panels_);
  });
  setup_.pool->parallel_for(
      static_cast<std::int64_t>(items_.size()), [&](std::int64_t item, int worker) {
        run_tile(args, items_[static_cast<std::size_t>(item)], scratch_of(worker));
      });
}

void Forward::pack_panel(const ForwardArgs& args, std::int64_t kv_head, std::int64_t panel) {
  const Packing& packing = setup_.packing;
  const std::int64_t token = panel * kPanelKeys;
  const Range tokens{token, std::min(token + kPanelKeys, setup_.problem.tokens_k)};
  packing.transposed(args.k, kv_head, tokens,
                     keys_.as<Word>() + kv_head * key_words_ + panel * packing.panel_words());
  const Packing& values = setup_.value_packing;
  values.stacked(
      args.v, kv_head, tokens, kPanelKeys,
      values_.as<Word>() + kv_head * value_words_ + values.token_words(token) * values.columns());
}

void Forward::run_tile(const ForwardArgs& args, const Item& item, Scratch scratch) {
  const HeadTiles& head = setup_.tiles(item.head);
  const QueryTile& tile = head.tiles[static_cast<std::size_t>(item.tile)];
  const std::int64_t columns = setup_.value_packing.columns();
  const int groups = static_cast<int>(ceil_div(tile.rows.size(), kGroupRows));
  setup_.packing.rows(args.q, item.head, tile.rows, groups * kGroupRows, scratch.queries);
  std::fill_n(scratch.o, groups * kGroupRows * columns, 0.0F);
  std::fill_n(scratch.states, groups, SoftmaxState::without_keys());
  const auto each_row = [&](auto&& body) {
    for (std::int64_t r = 0; r < tile.rows.size(); ++r) {
      body(tile.rows.begin + r, static_cast<int>(r % kGroupRows), scratch.o + r * columns,
           scratch.states[r / kGroupRows]);
    }
  };
  each_row([&](std::int64_t row, int i, float* o, SoftmaxState& state) {
    start_row(args, setup_.scale_log2(), item.head, row, i, o, state);
  });
  auto panels = head.panels_of(tile);
  while (!panels.empty()) {
    const auto now = panels.first(std::min<std::size_t>(kStepPanels, panels.size()));
    for (int group = 0; group < groups; ++group)
      step(head, now, group, setup_.kv_head(item.head), scratch);
    panels = panels.subspan(now.size());
  }
  each_row([&](std::int64_t row, int i, float* o, SoftmaxState& state) {
    finish_row(args, setup_.scale_log2(), item.head, row, i, o, state);
  });
}

/// Scores, softmax and O of one group over up to kStepPanels panels.
void Forward::step(const HeadTiles& head, std::span<const PanelRef> panels, int group,
                   std::int64_t kv_head, const Scratch& s) {
  const GroupPanels group_panels(head, panels, group, GroupPanels::Columns::packed);
  if (group_panels.all().empty()) return;
  const Packing& packing = setup_.packing;
  const MicroKernels& kernels = *setup_.kernels;

  Product scores{.a = s.queries + group * kGroupRows * packing.row_stride(),
                 .a_row = packing.row_stride(),
                 .a_step = 1,
                 .b_step = kPanelKeys,
                 .steps = packing.dim_words(),
                 .c_row = kScoreStride};
  for (const ScorePanel& score_panel : group_panels.all()) {
    scores.b = keys_.as<Word>() + kv_head * key_words_ + score_panel.panel * packing.panel_words();
    scores.c = s.scores + score_panel.column;
    kernels.product(scores);
  }

  if (setup_.capped()) kernels.cap({s.scores, group_panels.panels(), setup_.cap_factor()});
  SoftmaxState& state = s.states[group];
  kernels.softmax({s.scores, s.weights, group_panels.panels(), setup_.scale_log2(), &state});
  const std::int64_t columns = setup_.value_packing.columns();
  float* o = s.o + group * kGroupRows * columns;
  kernels.rescale(o, columns, columns, state.alpha);

  Product out{.a_row = packing.token_words(kScoreStride),
              .a_step = 1,
              .b_step = columns,
              .b_panel = kPanelKeys,
              .panels = static_cast<int>(columns / kPanelKeys),
              .c = o,
              .c_row = columns,
              .add = true};
  for (const KeyRun& run : group_panels.runs()) {
    out.a = s.weights + packing.token_words(run.column);
    out.b = values_.as<Word>() + kv_head * value_words_ + packing.token_words(run.key) * columns;
    out.steps = packing.token_words(run.keys);
    kernels.product(out);
  }
}

}  // namespace longca::cpu
