#include "attention/slice/work_order.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <queue>
#include <span>
#include <vector>

namespace longca::slice {
namespace {

/// A key tile as the order sees it, over all lists that a KV head reads.
struct TileWork {
  std::int64_t cost = 0;
  std::int64_t last = -1;  ///< query tile: the first that is walked
  std::int64_t group = 0;  ///< greatest cost of the tiles with the same `last`
};

std::vector<TileWork> tile_work(const TransposedLists& lists, std::int64_t first_list,
                                std::int64_t count) {
  std::vector<TileWork> work(static_cast<std::size_t>(lists.tiles_per_list));
  for (std::int64_t list = first_list; list < first_list + count; ++list) {
    for (std::size_t i = 0; i < work.size(); ++i) {
      const KeyTile& tile = lists.tiles[static_cast<std::size_t>(list * lists.tiles_per_list) + i];
      work[i].cost += tile.cost;
      if (tile.segments == 0) continue;
      const QuerySegment& segment = lists.segments[static_cast<std::size_t>(tile.segments_begin)];
      work[i].last = std::max<std::int64_t>(work[i].last, segment.q_tile + segment.count - 1);
      // The shares of a key tile go with the one that has its last queries.
      if (tile.shared >= 0 && i > 0 && (&tile - 1)->shared == tile.shared) {
        work[i].last = work[i - 1].last;
      }
    }
  }
  return work;
}

std::vector<std::int32_t> order_of(std::vector<TileWork>& work) {
  std::vector<std::int32_t> order(work.size());
  std::iota(order.begin(), order.end(), 0);
  const auto of = [&](std::int32_t i) -> TileWork& { return work[static_cast<std::size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return of(a).last < of(b).last; });
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    std::int64_t most = 0;
    for (end = begin; end < order.size() && of(order[end]).last == of(order[begin]).last; ++end) {
      most = std::max(most, of(order[end]).cost);
    }
    for (std::size_t i = begin; i < end; ++i) of(order[i]).group = most;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return of(a).group != of(b).group ? of(a).group > of(b).group : of(a).last > of(b).last;
  });
  return order;
}

/// When the last of `work_groups` is done that take tiles in turn, `heads` KV heads at a time.
std::int64_t finish_time(std::span<const std::int32_t> order, std::span<const TileWork> work,
                         int heads_k, int heads, int work_groups) {
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free;
  for (int i = 0; i < work_groups; ++i) free.push(0);
  std::int64_t last = 0;
  for (int section = 0; section < heads_k; section += heads) {
    for (const std::int32_t tile : order) {
      for (int head = 0; head < heads; ++head) {
        const std::int64_t end = free.top() + work[static_cast<std::size_t>(tile)].cost;
        free.pop();
        free.push(end);
        last = std::max(last, end);
      }
    }
  }
  return last;
}

/// The fewest KV heads at a time (their rows stay in L2) that leave work groups idle at the end for
/// no more than a fiftieth of the time longer than others do.
std::int32_t section_heads(std::span<const std::int32_t> order, std::span<const TileWork> work,
                           const BackwardWork& by) {
  constexpr std::size_t kManyItems = 64;  // per work group: what the end takes is nothing
  if (order.size() * static_cast<std::size_t>(by.heads_k) >
      kManyItems * static_cast<std::size_t>(by.work_groups)) {
    return 1;
  }
  std::vector<std::int64_t> times;
  std::vector<std::int32_t> heads;
  for (int i = 1; i <= by.heads_k; ++i) {
    const bool power = (i & (i - 1)) == 0 || i == by.heads_k;
    if (by.heads_k % i != 0 || !power) continue;
    heads.push_back(i);
    times.push_back(finish_time(order, work, by.heads_k, i, by.work_groups));
  }
  const std::int64_t least = *std::min_element(times.begin(), times.end());
  std::size_t best = 0;
  while (times[best] > least + least / 50) ++best;
  return heads[best];
}

}  // namespace

void order_work(const BackwardWork& work, TransposedLists& lists) {
  const std::int64_t orders = lists.list_heads == 1 ? 1 : work.heads_k;
  const std::int64_t lists_per_order = lists.list_heads / orders;
  for (std::int64_t i = 0; i < orders; ++i) {
    std::vector<TileWork> tiles = tile_work(lists, i * lists_per_order, lists_per_order);
    const std::vector<std::int32_t> order = order_of(tiles);
    if (i == 0) lists.section_heads = section_heads(order, tiles, work);
    lists.order.insert(lists.order.end(), order.begin(), order.end());
  }
}

}  // namespace longca::slice
