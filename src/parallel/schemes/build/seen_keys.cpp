#include "parallel/schemes/build/seen_keys.h"

#include <algorithm>

namespace longca {
namespace {

std::vector<Band> bands_of(const Mask& mask) {
  std::vector<Band> bands;
  bands.reserve(mask.slices().size());
  for (const MaskSlice& slice : mask.slices()) bands.push_back(Band::of(slice));
  return bands;
}

/// The first block that ends after `token`.
std::int64_t block_at(const std::vector<std::int64_t>& bounds, std::int64_t token) {
  return std::upper_bound(bounds.begin() + 1, bounds.end(), token) - bounds.begin() - 1;
}

}  // namespace

std::vector<Range> common_ranges(std::span<const Range> a, std::span<const Range> b) {
  std::vector<Range> common;
  if (a.empty()) return common;
  auto i = a.begin();
  auto j =
      std::partition_point(b.begin(), b.end(), [&](Range range) { return range.end <= i->begin; });
  while (i != a.end() && j != b.end()) {
    const Range both = intersect(*i, *j);
    if (!both.empty()) common.push_back(both);
    i->end < j->end ? ++i : ++j;
  }
  return common;
}

SeenKeys::SeenKeys(const Mask& mask)
    : mask_(any_head_of(mask)), bands_(bands_of(mask)), rows_(rows_of(bands_)) {}

std::vector<Range> SeenKeys::by(std::span<const Range> rows) const {
  std::vector<Range> seen;
  for (const Range range : rows) {
    if (mask_.blocks() == nullptr) {
      add_from_bands(range, {0, mask_.k_tokens()}, seen);
    } else {
      add_from_blocks(range, seen);
    }
  }
  join_ranges(seen);
  return seen;
}

void SeenKeys::add_from_bands(Range rows, Range keys, std::vector<Range>& seen) const {
  rows_.for_each_overlapping(rows, [&](std::uint32_t i) {
    const Band band = bands_[i].clipped(rows, keys);
    const Range with_cells = band.rows();
    if (with_cells.empty()) return;
    // The ends of consecutive rows of a band differ by at most one key, so their union has no gap.
    const Range found = {band.keys_of(with_cells.begin).begin,
                         band.keys_of(with_cells.end - 1).end};
    // Kept blocks that follow one another are one range: fewer to sort.
    if (!seen.empty() && seen.back().end == found.begin) {
      seen.back().end = found.end;
    } else {
      seen.push_back(found);
    }
  });
}

void SeenKeys::add_from_blocks(Range rows, std::vector<Range>& seen) const {
  const BlockLists& blocks = *mask_.blocks();
  for (std::int64_t q_block = block_at(blocks.q_bounds, rows.begin);
       q_block < blocks.q_blocks() && blocks.q_bounds[static_cast<std::size_t>(q_block)] < rows.end;
       ++q_block) {
    const auto at = static_cast<std::size_t>(q_block);
    const Range in_block = intersect(rows, {blocks.q_bounds[at], blocks.q_bounds[at + 1]});
    const std::span<const std::int32_t> kept = blocks.kept(0, q_block);
    for (std::size_t first = 0, next = 0; first < kept.size(); first = next) {
      for (next = first + 1; next < kept.size() && kept[next] == kept[next - 1] + 1;) ++next;
      add_from_bands(in_block,
                     {blocks.k_bounds[static_cast<std::size_t>(kept[first])],
                      blocks.k_bounds[static_cast<std::size_t>(kept[next - 1]) + 1]},
                     seen);
    }
  }
}

}  // namespace longca
