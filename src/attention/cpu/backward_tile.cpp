#include "attention/cpu/backward_tile.h"

#include <algorithm>
#include <array>

#include "attention/cpu/tile_plan.h"
#include "core/rounding.h"

namespace longca::cpu {
namespace {

/// Allocates consecutive, cache-line-aligned parts of a buffer; without a buffer it only counts
/// words.
class Carver {
 public:
  explicit Carver(Word* base) : base_(base) {}
  Word* take(std::int64_t words) {
    Word* at = base_ ? base_ + used_ : nullptr;
    used_ += round_up(words, 16);
    return at;
  }
  std::int64_t used() const { return used_; }

 private:
  Word* base_;
  std::int64_t used_ = 0;
};

BackwardScratch carve_from(Carver& carver, const BlockedSetup& setup) {
  const Packing& packing = setup.packing;
  const Packing& values = setup.value_packing;
  const bool pairs = setup.kernels->pairs;
  const std::int64_t columns = packing.columns();
  const std::int64_t tile_words = packing.token_words(kTileRows);
  const std::int64_t pair_rows = pairs ? kGroupRows : 0;
  BackwardScratch s{};
  s.k_transposed = carver.take(kChunkPanels * packing.panel_words());
  s.v_transposed = carver.take(kChunkPanels * values.panel_words());
  s.k_stacked = carver.take(packing.token_words(kChunkKeys) * columns);
  s.dk = carver.take(kChunkKeys * columns);
  s.dv = carver.take(kChunkKeys * values.columns());
  s.q_rows = carver.take(kTileRows * packing.row_stride());
  s.do_rows = carver.take(kTileRows * values.row_stride());
  s.q_stacked = packing.rows_are_stacked() ? s.q_rows : carver.take(tile_words * columns);
  s.do_stacked =
      packing.rows_are_stacked() ? s.do_rows : carver.take(tile_words * values.columns());
  s.lse_log2 = carver.take(kTileRows);
  s.delta = carver.take(kTileRows);
  s.dq = carver.take(kTileRows * columns);
  s.p = carver.take(tile_words * kScoreStride);
  s.ds = carver.take(tile_words * kScoreStride);
  s.scores = carver.take(pair_rows * kScoreStride);
  s.score_grads = carver.take(pair_rows * kScoreStride);
  s.ds_rows = carver.take(pair_rows * kScoreStride / 2);
  return s;
}

/// The first to the last group of a tile that attends to a panel.
struct GroupSpan {
  int begin = kTileGroups;
  int end = 0;
};

/// The steps of one visit.
class TileBackward {
 public:
  TileBackward(const BlockedSetup& setup, const TileVisit& visit, const BackwardScratch& scratch)
      : packing_(setup.packing),
        values_(setup.value_packing),
        kernels_(*setup.kernels),
        scale_log2_(setup.scale_log2()),
        capped_(setup.capped()),
        cap_factor_(capped_ ? setup.cap_factor() : 0),
        visit_(visit),
        s_(scratch) {}

  void run() {
    const int groups = static_cast<int>(ceil_div(visit_.tile.rows.size(), kGroupRows));
    std::fill_n(s_.dq, groups * kGroupRows * packing_.columns(), 0.0F);
    for (int group = 0; group < groups; ++group) rows_of_group(group);
    for (const PanelRef& ref : visit_.panels) keys_of_panel(ref.panel % kChunkPanels);
  }

 private:
  /// P, dS and dQ of 8 query rows.
  void rows_of_group(int group) {
    const GroupPanels group_panels(visit_.head, visit_.panels, group,
                                   GroupPanels::Columns::by_chunk);
    Word* const p = s_.p + packing_.token_words(group * kGroupRows) * kScoreStride;
    Word* const ds = s_.ds + packing_.token_words(group * kGroupRows) * kScoreStride;
    float* const scores = kernels_.pairs ? s_.scores : p;
    float* const score_grads = kernels_.pairs ? s_.score_grads : ds;
    clear_unseen(group_panels, p, ds);
    for (const ScorePanel& score_panel : group_panels.all()) {
      GroupSpan& span = spans_[static_cast<std::size_t>(score_panel.panel % kChunkPanels)];
      span = {std::min(span.begin, group), group + 1};
      score_product(packing_, s_.q_rows, s_.k_transposed, group, score_panel, scores);
      score_product(values_, s_.do_rows, s_.v_transposed, group, score_panel, score_grads);
    }
    if (capped_) kernels_.cap({scores, group_panels.panels(), cap_factor_});
    kernels_.gradient({scores, score_grads, group_panels.panels(), scale_log2_,
                       s_.lse_log2 + group * kGroupRows, s_.delta + group * kGroupRows, p, ds,
                       s_.ds_rows, capped_});
    query_gradient(group_panels, group, kernels_.pairs ? s_.ds_rows : ds);
  }

  /// Zeros P and dS of the visit's panels that this group skips but groups around it may not.
  void clear_unseen(const GroupPanels& group_panels, Word* p, Word* ds) const {
    auto seen = group_panels.all().begin();
    for (const PanelRef& ref : visit_.panels) {
      if (seen != group_panels.all().end() && seen->panel == ref.panel) {
        ++seen;
        continue;
      }
      for (std::int64_t i = 0; i < packing_.token_words(kGroupRows); ++i) {
        const std::int64_t at = i * kScoreStride + ref.panel % kChunkPanels * kPanelKeys;
        std::fill_n(p + at, kPanelKeys, 0.0F);
        std::fill_n(ds + at, kPanelKeys, 0.0F);
      }
    }
  }

  /// out = left (8 rows) · a transposed panel, both by `packing`.
  void score_product(const Packing& packing, const Word* left, const Word* transposed, int group,
                     const ScorePanel& score_panel, float* out) const {
    kernels_.product({.a = left + group * kGroupRows * packing.row_stride(),
                      .a_row = packing.row_stride(),
                      .a_step = 1,
                      .b = transposed + score_panel.panel % kChunkPanels * packing.panel_words(),
                      .b_step = kPanelKeys,
                      .steps = packing.dim_words(),
                      .c = out + score_panel.column,
                      .c_row = kScoreStride});
  }

  /// dQ of 8 rows += dS · K over their runs of keys.
  void query_gradient(const GroupPanels& group_panels, int group, const Word* ds) const {
    for (const KeyRun& run : group_panels.runs()) {
      const std::int64_t first_word = packing_.token_words(run.column);
      kernels_.product(
          over_columns(packing_, {.a = ds + first_word,
                                  .a_row = packing_.token_words(kScoreStride),
                                  .a_step = 1,
                                  .b = s_.k_stacked + first_word * packing_.columns(),
                                  .b_step = packing_.columns(),
                                  .steps = packing_.token_words(run.keys),
                                  .c = s_.dq + group * kGroupRows * packing_.columns()}));
    }
  }

  /// dV += Pᵀ · dO and dK += dSᵀ · Q for the 32 keys of a panel over the span of its groups.
  void keys_of_panel(int panel) const {
    const GroupSpan span = spans_[static_cast<std::size_t>(panel)];
    if (span.begin >= span.end) return;
    const std::int64_t first_word = packing_.token_words(span.begin * kGroupRows);
    const std::int64_t steps = packing_.token_words((span.end - span.begin) * kGroupRows);
    for (int key = panel * kPanelKeys; key < (panel + 1) * kPanelKeys; key += kGroupRows) {
      const std::int64_t left = first_word * kScoreStride + key;
      add_keys(values_, s_.p + left, s_.do_stacked, first_word, steps, s_.dv, key);
      add_keys(packing_, s_.ds + left, s_.q_stacked, first_word, steps, s_.dk, key);
    }
  }

  /// sums[key, …] += leftᵀ · stacked[first_word, first_word + steps), of 8 keys by `packing`.
  void add_keys(const Packing& packing, const Word* left, const Word* stacked,
                std::int64_t first_word, std::int64_t steps, float* sums, int key) const {
    const std::int64_t step = packing.rows_are_stacked() ? packing.row_stride() : packing.columns();
    kernels_.product(over_columns(packing, {.a = left,
                                            .a_row = 1,
                                            .a_step = kScoreStride,
                                            .b = stacked + first_word * step,
                                            .b_step = step,
                                            .steps = steps,
                                            .c = sums + key * packing.columns()}));
  }

  /// Completes a product that accumulates into [8, columns].
  static Product over_columns(const Packing& packing, Product x) {
    x.b_panel = kPanelKeys;
    x.panels = static_cast<int>(packing.columns() / kPanelKeys);
    x.c_row = packing.columns();
    x.add = true;
    return x;
  }

  const Packing& packing_;  ///< of q, k and their gradients
  const Packing& values_;   ///< of dO, v and dv
  const MicroKernels& kernels_;
  const float scale_log2_;
  const bool capped_;
  const float cap_factor_;
  const TileVisit& visit_;
  const BackwardScratch& s_;
  std::array<GroupSpan, kChunkPanels> spans_;
};

}  // namespace

std::int64_t BackwardScratch::words(const BlockedSetup& setup) {
  Carver carver(nullptr);
  carve_from(carver, setup);
  return carver.used();
}

BackwardScratch BackwardScratch::carve(Word* base, const BlockedSetup& setup) {
  Carver carver(base);
  return carve_from(carver, setup);
}

void backward_tile(const BlockedSetup& setup, const TileVisit& visit,
                   const BackwardScratch& scratch) {
  TileBackward(setup, visit, scratch).run();
}

}  // namespace longca::cpu
