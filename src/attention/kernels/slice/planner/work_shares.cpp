#include "attention/kernels/slice/planner/work_shares.h"

#include <algorithm>
#include <limits>
#include <span>

namespace longca::slice {
namespace {

/// What a CTA of the sm_90a kernel spends, in cycles, at 128 dimensions: five products of
/// 64 × 128 × 128 take 2560 at least.
constexpr std::int64_t kKeyTileCycles = 5000;    ///< K, V, the first rows, and the results
constexpr std::int64_t kAddKeysCycles = 6000;    ///< more where the results are added to others
constexpr std::int64_t kEmptyTileCycles = 2000;  ///< zeros are written
constexpr std::int64_t kQueryTileCycles = 3400;
/// Shares of a key tile are not made shorter than this many query tiles.
constexpr std::int64_t kMinShare = 32;
/// Sums of shared keys take two more float32 tensors of the size of K: that much less than those of
/// dQ.
constexpr int kMinGroup = 4;
/// Of very long masks chunks are larger instead: planning takes as long as there are items.
constexpr std::int64_t kMaxItems = 16384;

/// Takes query tiles of a key tile, from the last on.
class Walk {
 public:
  Walk(const TransposedLists& lists, const KeyTile& tile)
      : segments_(std::span(lists.segments)
                      .subspan(static_cast<std::size_t>(tile.segments_begin),
                               static_cast<std::size_t>(tile.segments))) {}

  struct Part {
    std::int32_t q_begin = 0, q_end = 0;
    std::int64_t visits = 0;
  };

  bool done() const { return next_ == segments_.size(); }
  std::int32_t top() const { return segments_[next_].q_tile + segments_[next_].count - taken_; }

  /// At most so many visits, of query tiles from `floor` on.
  Part take(std::int64_t most, std::int32_t floor) {
    Part part;
    if (!done()) part.q_begin = part.q_end = top();
    while (!done() && part.visits < most && top() > floor) {
      const QuerySegment& segment = segments_[next_];
      const std::int64_t rest = top() - std::max(segment.q_tile, floor);
      const auto count = static_cast<std::int32_t>(std::min(rest, most - part.visits));
      part.visits += count;
      part.q_begin = top() - count;
      taken_ += count;
      if (taken_ == segment.count) {
        ++next_;
        taken_ = 0;
      }
    }
    return part;
  }

 private:
  std::span<const QuerySegment> segments_;
  std::size_t next_ = 0;
  std::int32_t taken_ = 0;  ///< of the next segment, from its end
};

class Sharing {
 public:
  Sharing(const BackwardWork& work, TransposedLists& lists) : work_(work), lists_(lists) {
    std::int64_t longest = 0;
    for (const KeyTile& tile : lists.tiles) {
      longest = std::max<std::int64_t>(longest, tile.q_tiles);
      visits_ += tile.q_tiles;
      end_ = std::max(end_, tile.q_end);
    }
    chunk_ = chunk_tiles();
    // Of few chunks L2 holds enough.
    if (2 * longest <= 5 * chunk_) chunk_ = kNoLimit;
  }

  std::vector<std::vector<WorkShare>> share() {
    if (lists_.of_blocks) return share_alike();
    const std::int64_t most =
        work_.ordered ? kNoLimit
                      : std::max(visits_ * work_.heads_k / (2 * std::int64_t{work_.ctas}),
                                 (kMinShare + head_blocks() - 1) / head_blocks());
    std::vector<WorkShare> shares;
    for (std::size_t i = 0; i < lists_.tiles.size(); ++i) share_tile(i, most, shares);
    return {std::move(shares)};
  }

 private:
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int32_t>::max();

  std::int64_t head_blocks() const { return head_blocks_of(work_, lists_); }

  std::int64_t chunk_tiles() const {
    if (work_.ordered || work_.heads_q < kMinGroup * work_.heads_k) return kNoLimit;
    std::int64_t tiles = std::max<std::int64_t>(1, work_.chunk_visits / head_blocks());
    while (tiles < end_ && lists_.tiles_per_list * ((end_ + tiles - 1) / tiles) > kMaxItems) {
      tiles *= 2;
    }
    return tiles;
  }
  /// A share that is shorter by far would cost more than it gives.
  bool is_long(std::int64_t visits) const { return 2 * visits > 3 * chunk_; }

  std::int32_t share_keys(const KeyTile& tile) {
    lists_.split_keys.push_back({tile.k_begin, tile.k_end});
    return static_cast<std::int32_t>(lists_.split_keys.size()) - 1;
  }

  void share_tile(std::size_t index, std::int64_t most, std::vector<WorkShare>& shares) {
    const KeyTile& tile = lists_.tiles[index];
    const bool in_chunks = is_long(tile.q_tiles);
    const auto id = static_cast<std::int32_t>(index);
    Walk walk(lists_, tile);
    do {
      std::int64_t floor = 0;
      std::int64_t last = tile.q_end - 1;
      if (in_chunks) {
        floor = (walk.top() - 1) / chunk_ * chunk_;
        last = std::min<std::int64_t>(floor + chunk_, end_) - 1;
      }
      Walk ahead = walk;
      const std::int64_t visits = ahead.take(kNoLimit, static_cast<std::int32_t>(floor)).visits;
      const std::int64_t parts = std::max<std::int64_t>(1, (visits + most - 1) / most);
      for (std::int64_t i = 0; i < parts; ++i) {
        const auto part = walk.take(visits * (i + 1) / parts - visits * i / parts,
                                    static_cast<std::int32_t>(floor));
        const std::int64_t all = part.visits * head_blocks();
        shares.push_back({{id, part.q_begin, part.q_end, -1}, all, share_cost(all), last});
      }
    } while (!walk.done());
  }

  /// Lists of blocks: the tiles of all lists are cut at the same query tiles, or none.
  std::vector<std::vector<WorkShare>> share_alike() {
    const auto tiles = static_cast<std::size_t>(lists_.tiles_per_list);
    const auto average =
        visits_ / std::max<std::int64_t>(1, static_cast<std::int64_t>(lists_.tiles.size()));
    const bool in_chunks = is_long(average);
    if (in_chunks) {
      for (std::size_t i = 0; i < tiles; ++i) share_keys(lists_.tiles[i]);
    }
    const std::int64_t count = lists_.list_heads == 1 ? 1 : work_.heads_k;
    std::vector<std::vector<WorkShare>> orders(static_cast<std::size_t>(count));
    for (std::size_t order = 0; order < orders.size(); ++order) {
      for (std::size_t i = 0; i < tiles; ++i) {
        const WorkShare whole = whole_tile(order, i, lists_.list_heads / count);
        in_chunks ? cut(whole, orders[order]) : orders[order].push_back(whole);
      }
    }
    return orders;
  }

  WorkShare whole_tile(std::size_t order, std::size_t index, std::int64_t lists) const {
    WorkShare whole = {{static_cast<std::int32_t>(index), 0, end_, -1}, 0, 0, -1};
    for (std::int64_t i = 0; i < lists; ++i) {
      const std::int64_t list = static_cast<std::int64_t>(order) * lists + i;
      const KeyTile& tile =
          lists_.tiles[static_cast<std::size_t>(list * lists_.tiles_per_list) + index];
      whole.visits += tile.q_tiles * head_blocks() / lists;
      whole.last = std::max<std::int64_t>(whole.last, tile.q_end - 1);
    }
    whole.cost = share_cost(whole.visits);
    return whole;
  }

  void cut(const WorkShare& whole, std::vector<WorkShare>& shares) const {
    const std::int64_t chunks = (end_ + chunk_ - 1) / chunk_;
    for (std::int64_t i = chunks; i-- > 0;) {
      WorkShare share = whole;
      share.item.split = whole.item.tile;
      share.item.q_begin = static_cast<std::int32_t>(i * chunk_);
      share.item.q_end = static_cast<std::int32_t>(std::min<std::int64_t>((i + 1) * chunk_, end_));
      share.last = share.item.q_end - 1;
      share.visits = whole.visits / chunks;
      share.cost = share_cost(share.visits);
      shares.push_back(share);
    }
  }

  const BackwardWork& work_;
  TransposedLists& lists_;
  std::int64_t visits_ = 0;  ///< of all tiles
  std::int32_t end_ = 0;     ///< of the query tiles
  std::int64_t chunk_ = 0;
};

}  // namespace

std::int64_t head_blocks_of(const BackwardWork& work, const TransposedLists& lists) {
  return work.heads_q / work.heads_k / lists.pack;
}

std::int64_t share_cost(std::int64_t visits) {
  return visits == 0 ? kEmptyTileCycles : kKeyTileCycles + visits * kQueryTileCycles;
}

std::int64_t part_cost(std::int64_t visits) {
  return share_cost(visits) + kAddKeysCycles;
}

std::vector<std::vector<WorkShare>> share_tiles(const BackwardWork& work, TransposedLists& lists) {
  return Sharing(work, lists).share();
}

void split_share(const BackwardWork& work, const TransposedLists& lists, const WorkShare& share,
                 std::int64_t parts, std::vector<WorkShare>& out) {
  const std::int64_t blocks = head_blocks_of(work, lists);
  const std::int64_t visits = share.visits / blocks;
  constexpr std::int64_t kAll = std::numeric_limits<std::int32_t>::max();
  Walk walk(lists, lists.tiles[static_cast<std::size_t>(share.item.tile)]);
  walk.take(kAll, share.item.q_end);
  for (std::int64_t i = 0; i < parts; ++i) {
    const auto part = walk.take(visits * (i + 1) / parts - visits * i / parts, share.item.q_begin);
    WorkShare next = share;
    next.item.q_begin = part.q_begin;
    next.item.q_end = part.q_end;
    next.visits = part.visits * blocks;
    next.cost = part_cost(next.visits);
    out.push_back(next);
  }
}

void place_shared_keys(std::span<WorkShare> shares, TransposedLists& lists) {
  std::vector<std::int32_t> counts(static_cast<std::size_t>(lists.tiles_per_list));
  for (const WorkShare& share : shares) ++counts[static_cast<std::size_t>(share.item.tile)];
  std::vector<std::int32_t> places(counts.size(), -1);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 2) continue;
    places[i] = static_cast<std::int32_t>(lists.split_keys.size());
    lists.split_keys.push_back({lists.tiles[i].k_begin, lists.tiles[i].k_end});
  }
  for (WorkShare& share : shares) {
    share.item.split = places[static_cast<std::size_t>(share.item.tile)];
  }
}

}  // namespace longca::slice
