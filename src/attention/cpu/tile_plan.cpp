#include "attention/cpu/tile_plan.h"

#include <algorithm>
#include <bit>

#include "core/rounding.h"

namespace longca::cpu {
namespace {

/// Bits [begin, end) of a word, both in [0, 32].
constexpr std::uint32_t bit_range(std::int64_t begin, std::int64_t end) {
  if (begin >= end) return 0;
  const std::uint32_t below_end = end == 32 ? ~0U : (1U << end) - 1;
  return below_end & ~((1U << begin) - 1);
}

/// Consecutive rows with the same keys.
struct RowRun {
  std::int64_t rows = 0;
  std::vector<Range> keys;
};

/// Per row: whether its keys may differ from the row before it, at an edge of a slice or block or
/// inside a slice with a diagonal.
std::vector<bool> rows_that_differ(const Mask& mask) {
  std::vector<bool> differs(static_cast<std::size_t>(mask.q_tokens()) + 1, false);
  const auto mark = [&](std::int64_t row) { differs[static_cast<std::size_t>(row)] = true; };
  for (const MaskSlice& slice : mask.slices()) {
    mark(slice.q_begin);
    mark(slice.q_end);
    if (slice.type == MaskSliceType::full) continue;
    for (std::int64_t row = slice.q_begin; row < slice.q_end; ++row) mark(row);
  }
  if (mask.blocks()) {
    for (const std::int64_t bound : mask.blocks()->q_bounds) mark(bound);
  }
  return differs;
}

/// Builds the panels of one tile after another and reuses its scratch.
class TileBuilder {
 public:
  TileBuilder(const Mask& mask, int head, HeadTiles& out)
      : mask_(mask),
        head_(head),
        out_(out),
        differs_(rows_that_differ(mask)),
        panels_(static_cast<std::size_t>(ceil_div(mask.k_tokens(), kPanelKeys))),
        change_(panels_ + 1),
        touched_(panels_) {}

  void add(Range rows) {
    QueryTile tile{rows, static_cast<std::int64_t>(out_.panels.size()), 0};
    read_rows(rows);
    count_rows();
    list_panels(rows.size());
    fill_bits();
    tile.last = static_cast<std::int64_t>(out_.panels.size());
    out_.tiles.push_back(tile);
  }

 private:
  void read_rows(Range rows) {
    runs_.clear();
    for (std::int64_t q = rows.begin; q < rows.end; ++q) {
      if (runs_.empty() || differs_[static_cast<std::size_t>(q)]) {
        runs_.push_back({0, mask_.key_intervals(head_, q)});
      }
      ++runs_.back().rows;
    }
  }

  /// Per panel: the number of rows that attend to all of it (as differences between panels), and
  /// whether a row attends to a part.
  void count_rows() {
    std::fill(change_.begin(), change_.end(), 0);
    std::fill(touched_.begin(), touched_.end(), std::uint8_t{0});
    for (const RowRun& run : runs_) {
      for (const Range& keys : run.keys) {
        const auto whole_begin = static_cast<std::size_t>(ceil_div(keys.begin, kPanelKeys));
        const auto whole_end = static_cast<std::size_t>(keys.end / kPanelKeys);
        if (whole_begin < whole_end) {
          change_[whole_begin] += run.rows;
          change_[whole_end] -= run.rows;
        }
        touched_[static_cast<std::size_t>(keys.begin / kPanelKeys)] = 1;
        touched_[static_cast<std::size_t>((keys.end - 1) / kPanelKeys)] = 1;
      }
    }
  }

  void list_panels(std::int64_t rows) {
    partial_.clear();
    std::int64_t whole = 0;
    for (std::size_t p = 0; p < panels_; ++p) {
      whole += change_[p];
      if (whole == 0 && !touched_[p]) continue;
      PanelRef ref{static_cast<std::int32_t>(p)};
      if (whole < rows) {
        ref.first_mask = static_cast<std::int32_t>(out_.bits.size() / kGroupRows);
        ref.mask_step = runs_.size() == 1 ? 0 : 1;
        const std::int64_t words = ref.mask_step == 0 ? kGroupRows : round_up(rows, kGroupRows);
        out_.bits.resize(out_.bits.size() + static_cast<std::size_t>(words), 0);
        partial_.push_back(ref);
      }
      out_.panels.push_back(ref);
    }
  }

  void fill_bits() {
    std::int64_t first_row = 0;
    for (const RowRun& run : runs_) {
      auto ref = partial_.begin();
      for (const Range& keys : run.keys) {
        ref = std::lower_bound(ref, partial_.end(), keys.begin / kPanelKeys,
                               [](const PanelRef& r, std::int64_t p) { return r.panel < p; });
        for (auto at = ref; at != partial_.end() && first_key(*at) < keys.end; ++at) {
          add_bits(*at, {first_row, first_row + run.rows}, keys);
        }
      }
      first_row += run.rows;
    }
  }

  void add_bits(PanelRef ref, Range rows, Range keys) {
    const std::uint32_t bits =
        bit_range(std::max<std::int64_t>(keys.begin - first_key(ref), 0),
                  std::min<std::int64_t>(keys.end - first_key(ref), kPanelKeys));
    std::uint32_t* words = out_.bits.data() + std::int64_t{ref.first_mask} * kGroupRows;
    const std::int64_t end = ref.mask_step == 0 ? kGroupRows : rows.end;
    for (std::int64_t row = rows.begin; row < end; ++row) words[row] |= bits;
  }

  static std::int64_t first_key(PanelRef ref) { return std::int64_t{ref.panel} * kPanelKeys; }

  const Mask& mask_;
  int head_;
  HeadTiles& out_;
  std::vector<bool> differs_;
  std::size_t panels_;
  std::vector<std::int64_t> change_;
  std::vector<std::uint8_t> touched_;
  std::vector<RowRun> runs_;
  std::vector<PanelRef> partial_;
};

}  // namespace

std::int64_t HeadTiles::bytes() const {
  return static_cast<std::int64_t>(tiles.capacity() * sizeof(QueryTile) +
                                   panels.capacity() * sizeof(PanelRef) +
                                   bits.capacity() * sizeof(std::uint32_t));
}

HeadTiles plan_tiles(const Mask& mask, int head, std::span<const std::int64_t> row_bounds) {
  HeadTiles out;
  TileBuilder builder(mask, head, out);
  for (std::size_t i = 0; i + 1 < row_bounds.size(); ++i) {
    for (std::int64_t begin = row_bounds[i]; begin < row_bounds[i + 1]; begin += kTileRows) {
      builder.add({begin, std::min(begin + kTileRows, row_bounds[i + 1])});
    }
  }
  return out;
}

namespace {

std::uint32_t union_of_rows(const std::uint32_t* bits) {
  std::uint32_t seen = 0;
  for (int i = 0; i < kGroupRows; ++i) seen |= bits[i];
  return seen;
}

}  // namespace

GroupPanels::GroupPanels(const HeadTiles& head, std::span<const PanelRef> panels, int group,
                         Columns columns) {
  for (const PanelRef& ref : panels) {
    const std::uint32_t* bits = head.bits_of(ref, group);
    const std::uint32_t seen = bits ? union_of_rows(bits) : ~0U;
    if (seen == 0) continue;
    const int place = columns == Columns::packed ? count_ : ref.panel % kChunkPanels;
    ScorePanel& score_panel = panels_[static_cast<std::size_t>(count_++)];
    score_panel = {place * kPanelKeys, ref.panel, bits};
    add_run(score_panel, seen);
  }
}

/// Adds the run from the first to the last key of the panel that any row attends to, rounded out to
/// pairs; masked weights in between are 0.
void GroupPanels::add_run(const ScorePanel& score_panel, std::uint32_t seen) {
  const int begin = std::countr_zero(seen) & ~1;
  const int end = (kPanelKeys - std::countl_zero(seen) + 1) & ~1;
  const KeyRun run{score_panel.column + begin, std::int64_t{score_panel.panel} * kPanelKeys + begin,
                   end - begin};
  if (run_count_ > 0) {
    KeyRun& last = runs_[static_cast<std::size_t>(run_count_ - 1)];
    if (last.column + last.keys == run.column && last.key + last.keys == run.key) {
      last.keys += run.keys;
      return;
    }
  }
  runs_[static_cast<std::size_t>(run_count_++)] = run;
}

}  // namespace longca::cpu
