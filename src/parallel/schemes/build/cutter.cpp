#include "parallel/schemes/build/cutter.h"

#include <algorithm>

#include "mask/band.h"

namespace longca {
namespace {

struct Box {
  Range rows{kNoLimit, 0};
  Range keys{kNoLimit, 0};

  void include(Range more_rows, Range more_keys) {
    rows = {std::min(rows.begin, more_rows.begin), std::max(rows.end, more_rows.end)};
    keys = {std::min(keys.begin, more_keys.begin), std::max(keys.end, more_keys.end)};
  }
  bool empty() const { return rows.empty() || keys.empty(); }
};

/// A mask of so many slices stays one whatever is cut off.
constexpr std::size_t kManySlices = 64;

/// Around the cells of the slices; around their rectangles if there are many.
Box slice_box(const Mask& mask) {
  Box box;
  const bool many = mask.slices().size() >= kManySlices;
  for (const Slice& slice : mask.slices()) {
    if (many) {
      box.include({slice.q_begin, slice.q_end}, {slice.k_begin, slice.k_end});
      continue;
    }
    const Band band = Band::of(slice);
    const Range rows = band.rows();
    box.include(rows, {band.keys_of(rows.begin).begin, band.keys_of(rows.end - 1).end});
  }
  return box;
}

/// Around the kept blocks of all heads.
Box block_box(const BlockLists& blocks) {
  Box box;
  for (int head = 0; head < blocks.heads; ++head) {
    for (std::int64_t i = 0; i < blocks.q_blocks(); ++i) {
      const auto kept = blocks.kept(head, i);
      if (kept.empty()) continue;
      const auto row = static_cast<std::size_t>(i);
      const auto first = static_cast<std::size_t>(kept.front());
      const auto last = static_cast<std::size_t>(kept.back());
      box.include({blocks.q_bounds[row], blocks.q_bounds[row + 1]},
                  {blocks.k_bounds[first], blocks.k_bounds[last + 1]});
    }
  }
  return box;
}

Box box_of(const Mask& mask) {
  Box box = slice_box(mask);
  if (mask.blocks() == nullptr || box.empty()) return box;
  const Box blocks = block_box(*mask.blocks());
  return {intersect(box.rows, blocks.rows), intersect(box.keys, blocks.keys)};
}

/// A mask of many slices is built anew only if much is cut off.
bool worth_trimming(const Mask& mask, const Box& box) {
  const std::int64_t cut = mask.slices().size() < kManySlices ? 1 : mask.q_tokens() / 8 + 1;
  return mask.q_tokens() - box.rows.size() >= cut || mask.k_tokens() - box.keys.size() >= cut;
}

bool covers(const std::vector<Range>& ranges, std::int64_t tokens) {
  return ranges.size() == 1 && ranges.front() == Range{0, tokens};
}

}  // namespace

Cutter::Cutter(const Mask& mask, const std::vector<Range>& queries)
    : mask_(covers(queries, mask.q_tokens())
                ? mask
                : mask.sub_mask(queries, std::vector<Range>{{0, mask.k_tokens()}})) {}

std::optional<Piece> Cutter::cut(const std::vector<Range>& keys) const {
  const std::vector<Range> rows = {{0, mask_.q_tokens()}};
  Mask part = covers(keys, mask_.k_tokens()) ? mask_ : mask_.sub_mask(rows, keys);
  const Box box = box_of(part);
  if (box.empty() || part.mean_area() == 0) return std::nullopt;
  if (!worth_trimming(part, box)) {
    return Piece{{0, part.q_tokens()}, {0, part.k_tokens()}, std::move(part)};
  }
  Mask trimmed = part.sub_mask(std::vector<Range>{box.rows}, std::vector<Range>{box.keys});
  return Piece{box.rows, box.keys, std::move(trimmed)};
}

}  // namespace longca
