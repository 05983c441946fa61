#include "attention/adapters/cublas/row_mask.h"

#include <algorithm>
#include <span>

namespace longca {
namespace {

RowMask::MaskSlice row_slice(const MaskSlice& slice) {
  return {.q_begin = static_cast<std::int32_t>(slice.q_begin),
          .q_end = static_cast<std::int32_t>(slice.q_end),
          .k_begin = static_cast<std::int32_t>(slice.k_begin),
          .k_end = static_cast<std::int32_t>(slice.k_end),
          .lower =
              slice.type == MaskSliceType::inverse_causal || slice.type == MaskSliceType::bi_causal,
          .upper = slice.type == MaskSliceType::causal || slice.type == MaskSliceType::bi_causal};
}

/// Cuts the queries wherever a slice begins or ends. O(slices · slices of a band).
void add_bands(RowMask& rows, const Mask& mask) {
  std::vector<std::int64_t> cuts{0, mask.q_tokens()};
  for (const MaskSlice& slice : mask.slices())
    cuts.insert(cuts.end(), {slice.q_begin, slice.q_end});
  std::ranges::sort(cuts);
  cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());
  rows.band_offsets.push_back(0);
  std::vector<MaskSlice> open;  // slices of the current band; the mask's are in order of q_begin
  auto next = mask.slices().begin();
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    std::erase_if(open, [&](const MaskSlice& slice) { return slice.q_end <= cuts[i]; });
    while (next != mask.slices().end() && next->q_begin <= cuts[i]) open.push_back(*next++);
    for (const MaskSlice& slice : open) rows.slices.push_back(row_slice(slice));
    rows.band_offsets.push_back(static_cast<std::int32_t>(rows.slices.size()));
    std::fill(rows.band_of_row.begin() + cuts[i], rows.band_of_row.begin() + cuts[i + 1],
              static_cast<std::int32_t>(i));
  }
}

std::vector<std::int32_t> block_of(std::span<const std::int64_t> bounds) {
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(bounds.back()));
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    std::fill(blocks.begin() + bounds[i], blocks.begin() + bounds[i + 1],
              static_cast<std::int32_t>(i));
  }
  return blocks;
}

void add_blocks(RowMask& rows, const BlockLists& lists) {
  rows.block_of_row = block_of(lists.q_bounds);
  rows.block_of_key = block_of(lists.k_bounds);
  rows.heads = lists.heads;
  rows.q_blocks = static_cast<std::int32_t>(lists.q_blocks());
  rows.words = static_cast<std::int32_t>((lists.k_blocks() + 31) / 32);
  rows.kept.resize(static_cast<std::size_t>(lists.heads * lists.q_blocks() * rows.words));
  for (int head = 0; head < lists.heads; ++head) {
    for (std::int64_t i = 0; i < lists.q_blocks(); ++i) {
      std::uint32_t* words = rows.kept.data() + (head * lists.q_blocks() + i) * rows.words;
      for (const std::int32_t k : lists.kept(head, i)) words[k / 32] |= 1U << (k % 32);
    }
  }
}

}  // namespace

RowMask row_mask(const Mask& mask) {
  RowMask rows;
  rows.band_of_row.resize(static_cast<std::size_t>(mask.q_tokens()));
  add_bands(rows, mask);
  if (const BlockLists* lists = mask.blocks()) add_blocks(rows, *lists);
  return rows;
}

}  // namespace longca
