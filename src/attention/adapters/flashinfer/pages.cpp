#include "attention/adapters/flashinfer/pages.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include "attention/adapters/block_form.h"

namespace longca::flashinfer {
namespace {

std::int64_t size_of_block(const std::vector<std::int64_t>& bounds, std::int64_t block) {
  const auto at = static_cast<std::size_t>(block);
  return bounds[at + 1] - bounds[at];
}

std::int64_t row_keys(const BlockLists& blocks, int list, std::int64_t q_block) {
  const auto kept = blocks.kept(list, q_block);
  if (kept.empty()) return 0;
  const std::int64_t first = size_of_block(blocks.k_bounds, 0);
  if (page_size(blocks) > 1) {  // all but the last are equal
    return static_cast<std::int64_t>(kept.size() - 1) * first +
           size_of_block(blocks.k_bounds, kept.back());
  }
  return std::accumulate(kept.begin(), kept.end(), std::int64_t{0},
                         [&](std::int64_t sum, std::int32_t block) {
                           return sum + size_of_block(blocks.k_bounds, block);
                         });
}

}  // namespace

std::int64_t page_size(const BlockLists& blocks) {
  if (blocks.k_blocks() == 0) return 1;
  const std::int64_t first = size_of_block(blocks.k_bounds, 0);
  const bool equal =
      are_multiples_of(first, blocks.k_bounds) && largest_block(blocks.k_bounds) == first;
  return equal ? first : 1;
}

std::int64_t page_entries(const BlockLists& blocks) {
  if (page_size(blocks) > 1) return static_cast<std::int64_t>(blocks.indices.size());
  std::int64_t keys = 0;
  for (const std::int32_t block : blocks.indices) keys += size_of_block(blocks.k_bounds, block);
  return keys;
}

std::vector<PageRow> page_rows(const BlockLists& blocks) {
  const std::int64_t page = page_size(blocks);
  std::vector<PageRow> rows;
  rows.reserve(blocks.offsets.size());
  std::int64_t first = 0;
  for (int list = 0; list < blocks.heads; ++list) {
    for (std::int64_t i = 0; i < blocks.q_blocks(); ++i) {
      const std::int64_t keys = row_keys(blocks, list, i);
      rows.push_back({first, keys});
      first += (keys + page - 1) / page;
    }
  }
  return rows;
}

WorkList share_work(const BlockLists& blocks, int heads_q, int tile_q, int groups) {
  const std::vector<PageRow> rows = page_rows(blocks);
  const auto q_blocks = static_cast<std::size_t>(blocks.q_blocks());
  struct Item {
    std::int32_t row, head, tile;
  };
  std::vector<std::vector<Item>> shares(static_cast<std::size_t>(groups));
  using Load = std::pair<double, std::size_t>;  // its cost and the work group
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (std::size_t group = 0; group < shares.size(); ++group) loads.emplace(0, group);

  std::vector<std::int32_t> order(q_blocks);
  std::size_t items = 0;
  for (int head = 0; head < heads_q; ++head) {
    const std::size_t begin = static_cast<std::size_t>(head) * blocks.heads / heads_q * q_blocks;
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>{}, [&](std::int32_t i) {
      return rows[begin + static_cast<std::size_t>(i)].keys;
    });
    for (const std::int32_t i : order) {
      const std::int64_t tiles = (size_of_block(blocks.q_bounds, i) + tile_q - 1) / tile_q;
      const auto row = static_cast<std::int32_t>(begin) + i;
      for (std::int64_t tile = tiles - 1; tile >= 0; --tile) {
        const auto [cost, group] = loads.top();
        loads.pop();
        // FlashInfer's own estimate.
        loads.emplace(
            cost + 2.0 * tile_q + static_cast<double>(rows[static_cast<std::size_t>(row)].keys),
            group);
        shares[group].push_back({row, head, static_cast<std::int32_t>(tile)});
        ++items;
      }
    }
  }

  WorkList work;
  for (auto* part :
       {&work.tile, &work.head, &work.q_begin, &work.q_size, &work.first, &work.keys}) {
    part->reserve(items);
  }
  work.work_begin.push_back(0);
  for (const auto& share : shares) {
    for (const Item& item : share) {
      const auto row = static_cast<std::size_t>(item.row);
      const auto q_block = static_cast<std::int64_t>(row % q_blocks);
      work.tile.push_back(item.tile);
      work.head.push_back(item.head);
      work.q_begin.push_back(static_cast<std::int32_t>(blocks.q_bounds[row % q_blocks]));
      work.q_size.push_back(static_cast<std::int32_t>(size_of_block(blocks.q_bounds, q_block)));
      work.first.push_back(static_cast<std::int32_t>(rows[row].first));
      work.keys.push_back(static_cast<std::int32_t>(rows[row].keys));
    }
    work.work_begin.push_back(static_cast<std::int32_t>(work.tile.size()));
  }
  return work;
}

}  // namespace longca::flashinfer
