#include "mask/head_view.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace longca {
namespace {

std::vector<Band> sorted_bands(const Mask& mask, bool transpose) {
  std::vector<Band> bands;
  bands.reserve(mask.slices().size());
  for (const MaskSlice& slice : mask.slices()) {
    Band band = Band::of(slice);
    if (transpose) band = band.transposed();
    band.q = band.rows();
    bands.push_back(band);
  }
  const auto before = [](const Band& a, const Band& b) { return a.q.begin < b.q.begin; };
  if (!std::is_sorted(bands.begin(), bands.end(), before)) {
    std::sort(bands.begin(), bands.end(), before);
  }
  return bands;
}

HeadView::Blocks blocks_of_head(const BlockLists& lists, int head) {
  const auto first = static_cast<std::size_t>(head * lists.q_blocks());
  const auto last = first + static_cast<std::size_t>(lists.q_blocks());
  HeadView::Blocks blocks{lists.q_bounds, lists.k_bounds, {}, {}};
  for (std::size_t i = first; i <= last; ++i) {
    blocks.offsets.push_back(lists.offsets[i] - lists.offsets[first]);
  }
  blocks.indices.assign(lists.indices.begin() + lists.offsets[first],
                        lists.indices.begin() + lists.offsets[last]);
  return blocks;
}

HeadView::Blocks transposed_blocks(const HeadView::Blocks& blocks) {
  HeadView::Blocks out{blocks.column_bounds, blocks.row_bounds, {}, {}};
  std::vector<std::int64_t> next(blocks.column_bounds.size(), 0);
  for (const std::int32_t column : blocks.indices) ++next[static_cast<std::size_t>(column) + 1];
  for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  out.offsets = next;
  out.indices.resize(blocks.indices.size());
  for (std::size_t row = 0; row + 1 < blocks.offsets.size(); ++row) {
    for (std::int64_t i = blocks.offsets[row]; i < blocks.offsets[row + 1]; ++i) {
      const auto column = static_cast<std::size_t>(blocks.indices[static_cast<std::size_t>(i)]);
      out.indices[static_cast<std::size_t>(next[column]++)] = static_cast<std::int32_t>(row);
    }
  }
  return out;
}

}  // namespace

HeadView HeadView::of(const Mask& mask, int head) {
  LONGCA_CHECK(head >= 0 && head < mask.heads(), "head {} of a mask of {}", head, mask.heads());
  HeadView view{mask.q_tokens(), mask.k_tokens(), sorted_bands(mask, false), std::nullopt};
  if (mask.blocks() != nullptr) view.blocks = blocks_of_head(*mask.blocks(), head);
  return view;
}

HeadView HeadView::transposed(const Mask& mask, int head) {
  LONGCA_CHECK(head >= 0 && head < mask.heads(), "head {} of a mask of {}", head, mask.heads());
  HeadView view{mask.k_tokens(), mask.q_tokens(), sorted_bands(mask, true), std::nullopt};
  if (mask.blocks() != nullptr) {
    view.blocks = transposed_blocks(blocks_of_head(*mask.blocks(), head));
  }
  return view;
}

std::span<const Band* const> BandSweep::advance(Range rows) {
  std::erase_if(active_, [&](const Band* band) { return band->q.end <= rows.begin; });
  for (; next_ < bands_.size() && bands_[next_].q.begin < rows.end; ++next_) {
    if (bands_[next_].q.end > rows.begin) active_.push_back(&bands_[next_]);
  }
  return active_;
}

}  // namespace longca
