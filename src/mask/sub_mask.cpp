#include <algorithm>

#include "core/error.h"
#include "mask/mask_data.h"

namespace longca {
namespace {

/// A union of ranges with the local index of each one's first token. Queries of ascending ranges
/// resume the search where the last one ended.
class Selection {
 public:
  std::int64_t tokens = 0;

  Selection(const char* what, std::span<const Range> given, std::int64_t limit) {
    parts_.reserve(given.size());
    std::int64_t previous = 0;
    for (const Range range : given) {
      LONGCA_CHECK(range.begin >= previous && range.begin <= range.end && range.end <= limit,
                   "{} range [{}, {}) after {} of {}", what, range.begin, range.end, previous,
                   limit);
      previous = range.end;
      if (range.empty()) continue;
      if (!parts_.empty() && parts_.back().range.end == range.begin) {
        parts_.back().range.end = range.end;
      } else {
        parts_.push_back({range, tokens - range.begin});
      }
      tokens += range.size();
    }
  }

  /// Calls visit(part, shift) for each selected part of `range`; local index = token + shift.
  template <typename Visit>
  void for_each_part(Range range, Visit&& visit) {
    for (std::size_t i = first_ = first_after(range.begin); i < parts_.size(); ++i) {
      if (parts_[i].range.begin >= range.end) return;
      visit(intersect(range, parts_[i].range), parts_[i].shift);
    }
  }

 private:
  struct Part {
    Range range;
    std::int64_t shift;
  };

  /// The first part that ends after `token`.
  std::size_t first_after(std::int64_t token) const {
    const auto before = [&](const Part& part) { return part.range.end <= token; };
    const auto here = parts_.begin() + static_cast<std::ptrdiff_t>(first_);
    auto from = here;
    auto to = here;
    if (from != parts_.begin() && !before(from[-1])) {
      from = parts_.begin();
    } else {
      // Galloping search: the next part is usually close.
      while (to != parts_.end() && before(*to)) {
        from = to + 1;
        to += std::min(parts_.end() - to, to - here + 1);
      }
    }
    return static_cast<std::size_t>(std::partition_point(from, to, before) - parts_.begin());
  }

  std::vector<Part> parts_;
  std::size_t first_ = 0;  ///< first part of the last query
};

/// Block bounds in local coordinates, and every block's local index, −1 if no token is left.
struct CutBounds {
  std::vector<std::int64_t> bounds = {0};
  std::vector<std::int32_t> local;
};

CutBounds cut_bounds(const std::vector<std::int64_t>& bounds, Selection& selection) {
  CutBounds cut;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    std::int64_t end = cut.bounds.back();
    selection.for_each_part({bounds[i], bounds[i + 1]},
                            [&](Range part, std::int64_t shift) { end = part.end + shift; });
    const bool kept = end > cut.bounds.back();
    cut.local.push_back(kept ? static_cast<std::int32_t>(cut.bounds.size() - 1) : -1);
    if (kept) cut.bounds.push_back(end);
  }
  return cut;
}

BlockLists cut_blocks(const BlockLists& blocks, Selection& queries, Selection& keys) {
  CutBounds q_cut = cut_bounds(blocks.q_bounds, queries);
  CutBounds k_cut = cut_bounds(blocks.k_bounds, keys);
  BlockLists local{std::move(q_cut.bounds), std::move(k_cut.bounds), blocks.heads, {0}, {}};
  for (int head = 0; head < blocks.heads; ++head) {
    for (std::int64_t i = 0; i < blocks.q_blocks(); ++i) {
      if (q_cut.local[static_cast<std::size_t>(i)] < 0) continue;
      for (const std::int32_t block : blocks.kept(head, i)) {
        const std::int32_t number = k_cut.local[static_cast<std::size_t>(block)];
        if (number >= 0) local.indices.push_back(number);
      }
      local.offsets.push_back(static_cast<std::int64_t>(local.indices.size()));
    }
  }
  return local;
}

/// Appends the band's cells between a consecutive part of the queries and the selected keys. Parts
/// of the keys that all rows attend to are adjacent in local coordinates and make one full slice.
void append_rows(std::vector<MaskSlice>& slices, const Band& band, std::int64_t q_shift,
                 Selection& keys) {
  const Range used = band.rows();
  if (used.empty()) return;
  const Range rows = {band.q.begin + q_shift, band.q.end + q_shift};
  bool extends = false;  // the last part made a full slice
  keys.for_each_part(
      {band.keys_of(used.begin).begin, band.keys_of(used.end - 1).end},
      [&](Range part, std::int64_t k_shift) {
        const Range columns = {part.begin + k_shift, part.end + k_shift};
        const std::int64_t shift = k_shift - q_shift;
        const bool all = band.hi >= part.end - band.q.begin && band.lo <= part.begin - band.q.end;
        if (!all) {
          append_band(slices, {rows, columns, band.lo + shift, band.hi + shift});
        } else if (extends) {
          slices.back().k_end = columns.end;
        } else {
          slices.push_back({rows.begin, rows.end, columns.begin, columns.end, MaskSliceType::full});
        }
        extends = all;
      });
}

}  // namespace

Mask Mask::sub_mask(std::span<const Range> q_ranges, std::span<const Range> k_ranges) const {
  Selection queries("query", q_ranges, q_tokens());
  Selection keys("key", k_ranges, k_tokens());
  std::vector<MaskSlice> slices;
  for (const Band& band : data_->bands) {
    queries.for_each_part(band.q, [&](Range rows, std::int64_t q_shift) {
      append_rows(slices, {rows, band.k, band.lo, band.hi}, q_shift, keys);
    });
  }
  // Not checked for overlaps: parts of disjoint slices are disjoint, and the check would take a
  // third of the planning time of schemes with many small steps.
  auto data = build(queries.tokens, keys.tokens, joined_slices(std::move(slices)));
  if (data_->blocks) {
    data->blocks = cut_blocks(*data_->blocks, queries, keys);
    check_block_lists(*data->blocks, queries.tokens, keys.tokens);
  }
  data->measure();
  return Mask(std::move(data));
}

}  // namespace longca
