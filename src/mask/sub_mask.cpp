#include <algorithm>

#include "core/error.h"
#include "mask/mask_data.h"

namespace longca {
namespace {

/// A union of ranges with the local number of each one's first token.
struct Selection {
  std::vector<Range> ranges;
  std::vector<std::int64_t> local_begins;
  std::int64_t tokens = 0;

  Selection(const char* what, std::span<const Range> given, std::int64_t limit) {
    std::int64_t previous = 0;
    for (const Range range : given) {
      LONGCA_CHECK(range.begin >= previous && range.begin <= range.end && range.end <= limit,
                   "{} range [{}, {}) after {} of {}", what, range.begin, range.end, previous,
                   limit);
      previous = range.end;
      if (range.empty()) continue;
      if (!ranges.empty() && ranges.back().end == range.begin) {
        ranges.back().end = range.end;
      } else {
        ranges.push_back(range);
        local_begins.push_back(tokens);
      }
      tokens += range.size();
    }
  }

  /// Calls visit(part of `range` that is selected, what to add for its local numbers).
  template <typename Visit>
  void for_each_part(Range range, Visit&& visit) const {
    auto it = std::partition_point(ranges.begin(), ranges.end(),
                                   [&](Range r) { return r.end <= range.begin; });
    for (; it != ranges.end() && it->begin < range.end; ++it) {
      const std::int64_t shift =
          local_begins[static_cast<std::size_t>(it - ranges.begin())] - it->begin;
      visit(intersect(range, *it), shift);
    }
  }
};

/// Block bounds in local numbers, and the local number of every block that has tokens left, else
/// −1.
struct CutBounds {
  std::vector<std::int64_t> bounds = {0};
  std::vector<std::int32_t> local;
};

CutBounds cut_bounds(const std::vector<std::int64_t>& bounds, const Selection& selection) {
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

BlockLists cut_blocks(const BlockLists& blocks, const Selection& queries, const Selection& keys) {
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

}  // namespace

Mask Mask::sub_mask(std::span<const Range> q_ranges, std::span<const Range> k_ranges) const {
  const Selection queries("query", q_ranges, q_tokens());
  const Selection keys("key", k_ranges, k_tokens());
  std::vector<Slice> slices;
  for (const Band& band : data_->bands) {
    queries.for_each_part(band.q, [&](Range rows, std::int64_t q_shift) {
      keys.for_each_part(band.k, [&](Range columns, std::int64_t k_shift) {
        const std::int64_t shift = k_shift - q_shift;
        append_band(slices, {{rows.begin + q_shift, rows.end + q_shift},
                             {columns.begin + k_shift, columns.end + k_shift},
                             band.lo + shift,
                             band.hi + shift});
      });
    });
  }
  slices = joined_slices(std::move(slices));
  if (!data_->blocks) return from_slices(queries.tokens, keys.tokens, std::move(slices));
  return from_blocks(queries.tokens, keys.tokens, std::move(slices),
                     cut_blocks(*data_->blocks, queries, keys));
}

}  // namespace longca
