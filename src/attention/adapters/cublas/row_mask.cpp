#include "attention/adapters/cublas/row_mask.h"

#include <algorithm>
#include <span>

#include "core/cuda/upload.h"
#include "core/device.h"
#include "core/rounding.h"

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

/// Splits the queries into bands at the beginnings and ends of slices. O(bands · slices per band).
void add_bands(RowMask& rows, const Mask& mask) {
  std::vector<std::int64_t> cuts{0, mask.q_tokens()};
  for (const MaskSlice& slice : mask.slices())
    cuts.insert(cuts.end(), {slice.q_begin, slice.q_end});
  std::ranges::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  rows.band_offsets.push_back(0);
  std::vector<MaskSlice> open;  // of the current band; the mask's slices are ordered by q_begin
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

std::vector<std::int32_t> token_blocks(std::span<const std::int64_t> bounds) {
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(bounds.back()));
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    std::fill(blocks.begin() + bounds[i], blocks.begin() + bounds[i + 1],
              static_cast<std::int32_t>(i));
  }
  return blocks;
}

void add_blocks(RowMask& rows, const BlockLists& lists) {
  rows.block_of_row = token_blocks(lists.q_bounds);
  rows.block_of_key = token_blocks(lists.k_bounds);
  rows.heads = lists.heads;
  rows.q_blocks = static_cast<std::int32_t>(lists.q_blocks());
  rows.words = static_cast<std::int32_t>(ceil_div(lists.k_blocks(), 32));
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

namespace longca::naive {

DeviceRowMask::DeviceRowMask(const Mask& mask) {
  const RowMask rows = row_mask(mask);
  band_of_row_ = on_device(rows.band_of_row);
  band_offsets_ = on_device(rows.band_offsets);
  slices_ = on_device(rows.slices);
  block_of_row_ = on_device(rows.block_of_row);
  block_of_key_ = on_device(rows.block_of_key);
  kept_ = on_device(rows.kept);
  view_ = {.band_of_row = band_of_row_.as<std::int32_t>(),
           .band_offsets = band_offsets_.as<std::int32_t>(),
           .slices = slices_.as<RowMask::MaskSlice>(),
           .block_of_row = block_of_row_.as<std::int32_t>(),
           .block_of_key = block_of_key_.as<std::int32_t>(),
           .kept = kept_.as<std::uint32_t>(),
           .heads = rows.heads,
           .q_blocks = rows.q_blocks,
           .words = rows.words};
}

std::int64_t DeviceRowMask::bytes() const {
  std::int64_t bytes = 0;
  for (const Buffer* buffer :
       {&band_of_row_, &band_offsets_, &slices_, &block_of_row_, &block_of_key_, &kept_}) {
    bytes += buffer->bytes();
  }
  return bytes;
}

}  // namespace longca::naive
