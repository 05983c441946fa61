#include "attention/kernels/slice/planner/backward_pack.h"

#include <algorithm>
#include <cstdint>

namespace longca::slice {
namespace {

/// Key tiles × pack, about the number of partial query tiles: at a million tokens these waste
/// nothing that would be worth the time to list them.
constexpr std::int64_t kMaxSmallTiles = 8192;

/// First and last query tile that see one of a tile's keys.
struct Span {
  std::int64_t begin = 0, end = 0;
};

Span span_of(const TransposedLists& lists, const KeyTile& tile) {
  if (tile.segments == 0) return {};
  const auto first = static_cast<std::size_t>(tile.segments_begin);
  const QuerySegment& last = lists.segments[first + static_cast<std::size_t>(tile.segments) - 1];
  return {last.q_tile, lists.segments[first].q_tile + lists.segments[first].count};
}

/// Whether most visits are of rows that the next key tile's CTA comes to at another step of
/// its walk.
bool walks_out_of_step(const Mask& mask) {
  const TransposedLists lists = make_transposed_lists(mask, 1, {.ctas = 1});
  std::int64_t visits = 0;
  std::int64_t out_of_step = 0;
  for (std::size_t i = 0; i + 1 < lists.tiles.size(); ++i) {
    const Span here = span_of(lists, lists.tiles[i]);
    const Span next = span_of(lists, lists.tiles[i + 1]);
    const std::int64_t common = std::min(here.end, next.end) - std::max(here.begin, next.begin);
    visits += lists.tiles[i].q_tiles;
    if (here.end != next.end) out_of_step += std::max<std::int64_t>(common, 0);
  }
  return 2 * out_of_step > visits;
}

}  // namespace

int choose_backward_pack(const Mask& mask, int group_size) {
  int pack = 8;
  while (group_size % pack != 0) pack /= 2;
  if (mask.blocks() != nullptr) return pack;
  while (pack > 1 && mask.k_tokens() / kTileKeys * pack > kMaxSmallTiles) pack /= 2;
  return pack == 1 || walks_out_of_step(mask) ? 1 : pack;
}

}  // namespace longca::slice
