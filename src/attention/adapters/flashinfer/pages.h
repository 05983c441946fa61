#pragma once

#include <cstdint>
#include <vector>

#include "mask/mask.h"

/// Block lists as FlashInfer takes them: keys come in pages of one size, which lists name by number
/// (its BSR format). On the host; the numbers themselves are written on the device.
namespace longca::flashinfer {

/// Keys of a page: the blocks' size where all but the last have the same, else 1.
std::int64_t page_size(const BlockLists& blocks);

/// Numbers of pages of all lists together.
std::int64_t page_entries(const BlockLists& blocks);

/// What one row of a list, a query block, sees.
struct PageRow {
  std::int64_t first = 0;  ///< of its page numbers among all
  std::int64_t keys = 0;   ///< tokens; the last page may be partly used
  bool operator==(const PageRow&) const = default;
};
/// Rows in the order of the lists: [lists][query blocks].
std::vector<PageRow> page_rows(const BlockLists& blocks);

/// What the kernel's CTAs do one after another: CTA c has the items
/// [work_begin[c], work_begin[c + 1]) of every other array. An item is a tile of one query block of
/// one head.
struct WorkList {
  std::vector<std::int32_t> work_begin;
  std::vector<std::int32_t> tile;     ///< of the query block
  std::vector<std::int32_t> head;     ///< query head
  std::vector<std::int32_t> q_begin;  ///< first token of the query block
  std::vector<std::int32_t> q_size;   ///< its tokens
  std::vector<std::int32_t> first;    ///< PageRow
  std::vector<std::int32_t> keys;
};

/// Shares the tiles of `tile_q` queries among CTAs as FlashInfer's own planner does (heads
/// one after another, in each the rows of most keys first, always to the CTA that has least
/// to do), but for lists that differ from head to head.
WorkList share_work(const BlockLists& blocks, int heads_q, int tile_q, int groups);

}  // namespace longca::flashinfer
