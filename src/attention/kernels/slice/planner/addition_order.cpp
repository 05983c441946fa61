#include "attention/kernels/slice/planner/addition_order.h"

#include <algorithm>
#include <vector>

namespace longca::slice {
namespace {

/// Appends `segment` to `out`, cut to runs of equal rank, the last query tiles first, and counts
/// the visit.
void append_ranked(const QuerySegment& segment, std::vector<std::int32_t>& visits,
                   std::vector<QuerySegment>& out) {
  std::int32_t end = segment.q_tile + segment.count;
  while (end > segment.q_tile) {
    const std::int32_t rank = visits[static_cast<std::size_t>(end - 1)];
    std::int32_t begin = end;
    while (begin > segment.q_tile && visits[static_cast<std::size_t>(begin - 1)] == rank) {
      ++visits[static_cast<std::size_t>(--begin)];
    }
    out.push_back({begin, end - begin, segment.pattern, rank});
    end = begin;
  }
}

}  // namespace

void rank_additions(std::int64_t q_tokens, TransposedLists& lists) {
  const auto count = static_cast<std::size_t>(lists.tiles_per_list);
  if (count == 0) return;
  const auto lists_per_order =
      static_cast<std::size_t>(lists.list_heads) / (lists.order.size() / count);
  const std::int64_t q_tiles = (q_tokens + lists.tile_tokens() - 1) / lists.tile_tokens();
  std::vector<std::int32_t> visits;
  std::vector<QuerySegment> ranked;
  ranked.reserve(lists.segments.size());
  for (std::size_t list = 0; list < static_cast<std::size_t>(lists.list_heads); ++list) {
    visits.assign(static_cast<std::size_t>(q_tiles), 0);
    for (std::size_t place = 0; place < count; ++place) {
      const std::int32_t next = lists.order[list / lists_per_order * count + place].tile;
      KeyTile& tile = lists.tiles[list * count + static_cast<std::size_t>(next)];
      const auto begin = static_cast<std::int32_t>(ranked.size());
      for (std::int32_t i = 0; i < tile.segments; ++i) {
        append_ranked(lists.segments[static_cast<std::size_t>(tile.segments_begin + i)], visits,
                      ranked);
      }
      tile.segments_begin = begin;
      tile.segments = static_cast<std::int32_t>(ranked.size()) - begin;
    }
  }
  lists.segments.swap(ranked);
}

}  // namespace longca::slice
