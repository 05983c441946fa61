#include "support/list_digest.h"

// Structured bindings name the fields here: a field that is added or taken away does not compile,
// and one that is renamed does not matter.
namespace longca::slice {

using testing::Digest;

static void digest(Digest& out, const RowIntervals& intervals) {
  const auto& [lo0, hi0, lo1, hi1] = intervals;
  out.add(lo0, hi0, lo1, hi1);
}

static void digest(Digest& out, const PartialTile& tile) {
  const auto& [k_begin, pattern] = tile;
  out.add(k_begin[0], k_begin[1], pattern[0], pattern[1]);
}

static void digest(Digest& out, const TileJoints& joints) {
  const auto& [joint] = joints;
  out.add(joint[0].cut(), joint[0].skip(), joint[1].cut(), joint[1].skip());
}

static void digest(Digest& out, const FullRun& run) {
  const auto& [k_begin, sub_tiles] = run;
  out.add(k_begin, sub_tiles);
}

static void digest(Digest& out, const QueryTile& tile) {
  const auto& [row_begin, row_end, partial_begin, partial_count, runs_begin, full_tiles, cost,
               reserved] = tile;
  out.add(row_begin, row_end, partial_begin, partial_count, runs_begin, full_tiles, cost);
}

static void digest(Digest& out, const QuerySegment& segment) {
  const auto& [q_tile, count, pattern, rank] = segment;
  out.add(q_tile, count, pattern, rank);
}

static void digest(Digest& out, const KeyTile& tile) {
  const auto& [k_begin, k_end, segments_begin, segments, q_tiles, q_begin, q_end, reserved] = tile;
  out.add(k_begin, k_end, segments_begin, segments, q_tiles, q_begin, q_end);
}

static void digest(Digest& out, const KeyRange& range) {
  const auto& [begin, end] = range;
  out.add(begin, end);
}

static void digest(Digest& out, const WorkItem& item) {
  const auto& [tile, q_begin, q_end, shared] = item;
  out.add(tile, q_begin, q_end, shared);
}

void digest(Digest& out, const TileLists& lists) {
  const auto& [tiling, in_turn, list_heads, tiles_per_list, tiles, partial, joints, runs, patterns,
               order] = lists;
  const auto& [pack, row_pairs, joins] = tiling;
  if (row_pairs) out.add(row_pairs);
  if (in_turn) out.add(in_turn);
  if (joins) out.add(joins, joints);
  out.add(pack, list_heads, tiles_per_list, tiles, partial, runs, patterns, order);
}

void digest(Digest& out, const TransposedLists& lists) {
  const auto& [pack, list_heads, of_blocks, tells_halves, tiles_per_list, tiles, segments, patterns,
               split_keys, items_per_order, order, prior_parts, section_heads, end_cycles,
               chunk_items, region_visits, region_order] =
      lists;  // what they are estimated to take is not part of the lists
  out.add(pack, list_heads, of_blocks, tiles_per_list, tiles, segments, patterns, split_keys,
          items_per_order, order, section_heads, region_visits, region_order);
  if (!prior_parts.empty()) out.add(prior_parts);
  if (tells_halves) out.add(tells_halves);
}

}  // namespace longca::slice
