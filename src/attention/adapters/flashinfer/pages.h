#pragma once

#include <cstdint>
#include <vector>

#include "mask/mask.h"

/// Block lists in FlashInfer's BSR format: lists of the indices of key pages of one size. Planned
/// on the host; the indices are written on the device.
namespace longca::flashinfer {

/// Keys per page: the block size if all blocks but the last have the same, else 1.
std::int64_t page_size(const BlockLists& blocks);

/// Number of page indices over all lists.
std::int64_t page_entries(const BlockLists& blocks);

/// The pages of one row of a list, a query block.
struct PageRow {
  std::int64_t first = 0;  ///< offset of its first page index
  std::int64_t keys = 0;   ///< tokens; the last page may be partial
  bool operator==(const PageRow&) const = default;
};
/// Rows in the order of the lists: [lists][query blocks].
std::vector<PageRow> page_rows(const BlockLists& blocks);

/// The work of the kernel's persistent CTAs: CTA c has the items [work_begin[c], work_begin[c + 1])
/// of the other arrays. An item is a tile of one query block of one head.
struct WorkList {
  std::vector<std::int32_t> work_begin;
  std::vector<std::int32_t> tile;     ///< index in the query block
  std::vector<std::int32_t> head;     ///< query head
  std::vector<std::int32_t> q_begin;  ///< first token of the query block
  std::vector<std::int32_t> q_size;   ///< tokens of the query block
  std::vector<std::int32_t> first;    ///< PageRow::first
  std::vector<std::int32_t> keys;
};

/// Assigns the tiles of `tile_q` queries to CTAs as FlashInfer's own planner does (by head, then
/// longest row first, each to the least loaded CTA), but for lists that differ between heads.
WorkList assign_work(const BlockLists& blocks, int heads_q, int tile_q, int ctas);

}  // namespace longca::flashinfer
