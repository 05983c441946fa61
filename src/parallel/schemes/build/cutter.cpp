#include "parallel/schemes/build/cutter.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "mask/mask_slice.h"

namespace longca {
namespace {

struct Bounds {
  Range rows{kNoLimit, 0};
  Range keys{kNoLimit, 0};

  void include(Range more_rows, Range more_keys) {
    rows = {std::min(rows.begin, more_rows.begin), std::max(rows.end, more_rows.end)};
    keys = {std::min(keys.begin, more_keys.begin), std::max(keys.end, more_keys.end)};
  }
  bool empty() const { return rows.empty() || keys.empty(); }
};

/// Masks of at least this many slices are costly to rebuild, and stay so whatever is trimmed.
constexpr std::size_t kManySlices = 64;

/// The bounding box of the slices' cells; of their rectangles if there are many slices.
Bounds slice_bounds(const Mask& mask) {
  Bounds box;
  const bool many = mask.slices().size() >= kManySlices;
  for (const MaskSlice& slice : mask.slices()) {
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

/// The bounding box of the kept blocks of all heads.
Bounds block_bounds(const BlockLists& blocks) {
  Bounds box;
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

Bounds bounds_of(const Mask& mask) {
  Bounds box = slice_bounds(mask);
  if (mask.blocks() == nullptr || box.empty()) return box;
  const Bounds blocks = block_bounds(*mask.blocks());
  return {intersect(box.rows, blocks.rows), intersect(box.keys, blocks.keys)};
}

/// A mask of many slices is rebuilt only if much is trimmed.
bool worth_trimming(const Mask& mask, const Bounds& box) {
  const std::int64_t cut = mask.slices().size() < kManySlices ? 1 : mask.q_tokens() / 8 + 1;
  return mask.q_tokens() - box.rows.size() >= cut || mask.k_tokens() - box.keys.size() >= cut;
}

/// Passes over a result for a row without cells: the kernel writes it, the merge reads it with the
/// other result and writes the merged one.
constexpr double kTouchesOfARow = 4;

/// The longest gaps of at least `min_gap` rows between the ascending, disjoint `rows`: per gap the
/// index of the range that follows it, ascending.
std::vector<std::size_t> gaps_in(const std::vector<Range>& rows, std::int64_t min_gap) {
  const auto gap = [&](std::size_t i) { return rows[i].begin - rows[i - 1].end; };
  std::vector<std::size_t> gaps;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (gap(i) >= min_gap) gaps.push_back(i);
  }
  std::ranges::stable_sort(gaps, std::greater<>{}, gap);
  constexpr std::ptrdiff_t kMaxGaps = Cutter::kMaxPieces - 1;
  if (std::ssize(gaps) > kMaxGaps) gaps.erase(gaps.begin() + kMaxGaps, gaps.end());
  std::ranges::sort(gaps);
  return gaps;
}

/// False if every gap between slices is shorter than `min_gap` rows: a longer one would contain a
/// multiple of `min_gap`. Slices are in order of their rows; O(rows / min_gap · log slices).
bool may_have_gap(const Mask& mask, std::int64_t min_gap) {
  const auto slices = mask.slices();
  for (std::int64_t row = min_gap; row < mask.q_tokens(); row += min_gap) {
    const auto behind = std::ranges::upper_bound(slices, row, {}, &MaskSlice::q_begin);
    if (behind == slices.begin() || std::prev(behind)->q_end <= row) return true;
  }
  return false;
}

/// The bounding boxes of the cells between gaps; at most one box where there are no gaps.
std::vector<Bounds> boxes_between_gaps(const Mask& mask, std::int64_t min_gap) {
  if (mask.slices().size() >= kManySlices && !may_have_gap(mask, min_gap)) return {};
  std::vector<Range> reached;
  for (const MaskSlice& slice : mask.slices()) reached.push_back(Band::of(slice).rows());
  join_ranges(reached);
  const std::vector<std::size_t> gaps = gaps_in(reached, min_gap);
  if (gaps.empty()) return {};
  std::vector<Bounds> boxes(gaps.size() + 1);
  for (const MaskSlice& slice : mask.slices()) {
    const Band band = Band::of(slice);
    const Range rows = band.rows();
    const auto behind = std::ranges::upper_bound(gaps, rows.begin, {},
                                                 [&](std::size_t i) { return reached[i].begin; });
    boxes[static_cast<std::size_t>(behind - gaps.begin())].include(
        rows, {band.keys_of(rows.begin).begin, band.keys_of(rows.end - 1).end});
  }
  return boxes;
}

bool covers(const std::vector<Range>& ranges, std::int64_t tokens) {
  return ranges.size() == 1 && ranges.front() == Range{0, tokens};
}

}  // namespace

Cutter::Cutter(const Mask& mask, const std::vector<Range>& queries, std::int64_t min_gap)
    : mask_(covers(queries, mask.q_tokens())
                ? mask
                : mask.sub_mask(queries, std::vector<Range>{{0, mask.k_tokens()}})),
      min_gap_(min_gap) {}

std::vector<Piece> Cutter::cut(const std::vector<Range>& keys) const {
  const std::vector<Range> rows = {{0, mask_.q_tokens()}};
  Mask part = covers(keys, mask_.k_tokens()) ? mask_ : mask_.sub_mask(rows, keys);
  if (part.mean_area() == 0) return {};
  std::vector<Bounds> boxes;
  if (part.q_tokens() > min_gap_) boxes = boxes_between_gaps(part, min_gap_);
  if (boxes.size() < 2) {
    boxes = {bounds_of(part)};
    if (!worth_trimming(part, boxes.front())) {
      return {Piece{{0, part.q_tokens()}, {0, part.k_tokens()}, std::move(part)}};
    }
  }
  std::vector<Piece> pieces;
  for (const Bounds& box : boxes) {
    Mask piece = part.sub_mask(std::vector<Range>{box.rows}, std::vector<Range>{box.keys});
    if (piece.mean_area() > 0) pieces.push_back({box.rows, box.keys, std::move(piece)});
  }
  return pieces;
}

std::vector<Piece> Cutter::cut_rows(Range rows, const std::vector<Range>& keys) const {
  Mask part = mask_.sub_mask(std::vector{rows}, keys);
  if (part.mean_area() == 0) return {};
  const Range seen = bounds_of(part).keys;
  const Range all = {0, part.k_tokens()};
  if (seen == all) return {Piece{rows, all, std::move(part)}};
  const std::vector<Range> all_rows = {{0, rows.size()}};
  return {Piece{rows, seen, part.sub_mask(all_rows, std::vector{seen})}};
}

std::int64_t min_gap_of(const cost::Platform& platform, const cost::HeadShape& shape) {
  const double seconds_per_row = cost::memory_seconds(platform, kTouchesOfARow * shape.row_bytes());
  return static_cast<std::int64_t>(platform.kernel.any.seconds_per_call / seconds_per_row) + 1;
}

}  // namespace longca
