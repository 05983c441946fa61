#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "attention/kernels/slice/planner/block_lists.h"
#include "mask/block_draw.h"

namespace longca::slice {
namespace {

/// The bits of every key block: row j of list h is which query blocks keep it.
std::vector<std::uint32_t> transposed_bits_of(const BlockLists& blocks, int words) {
  std::vector<std::uint32_t> bits(
      static_cast<std::size_t>(blocks.heads * blocks.k_blocks() * words), 0);
  for (std::int64_t row = 0; row < blocks.heads * blocks.q_blocks(); ++row) {
    const std::int64_t head = row / blocks.q_blocks();
    const std::int64_t q = row % blocks.q_blocks();
    for (auto i = static_cast<std::size_t>(blocks.offsets[static_cast<std::size_t>(row)]);
         i < static_cast<std::size_t>(blocks.offsets[static_cast<std::size_t>(row) + 1]); ++i) {
      bits[static_cast<std::size_t>((head * blocks.k_blocks() + blocks.indices[i]) * words +
                                    q / 32)] |= std::uint32_t{1} << (q % 32);
    }
  }
  return bits;
}

/// The lists as the GPU makes them, by the same code.
TransposedLists lists_from_bits(const Mask& mask, int pack, const BackwardWork& work) {
  const TransposedBlockPlan plan = transposed_block_plan(mask, pack, work);
  const BlockLists& blocks = *mask.blocks();
  const std::vector<std::uint32_t> bits = transposed_bits_of(blocks, plan.words);
  const std::vector<std::int32_t> q_bounds(blocks.q_bounds.begin(), blocks.q_bounds.end());
  const auto tile_of = [&](std::int64_t i) {
    const std::int64_t first = i / plan.tiles_per_list() * blocks.k_blocks();
    const std::int64_t half = i % plan.tiles_per_list() * 2;
    const auto row = [&](std::int64_t h) {
      return bits.data() + (first + h / plan.block_sub_tiles) * plan.words;
    };
    return TransposedBlockTile{{row(half), half + 1 < plan.sub_tiles() ? row(half + 1) : nullptr},
                               plan.words,
                               q_bounds.data(),
                               kBackwardRows / pack,
                               plan.window_blocks};
  };
  std::vector<TransposedBlockCounts> counts;
  for (std::int64_t i = 0; i < plan.tiles(); ++i) {
    counts.push_back(walk_transposed_block_tile(tile_of(i), [](const QuerySegment&) {}));
  }
  TransposedBlockTiles placed = place_transposed_block_tiles(plan, work, counts);
  placed.lists.segments.resize(static_cast<std::size_t>(placed.segments));
  for (std::int64_t i = 0; i < plan.tiles(); ++i) {
    auto to = placed.lists.segments.begin() +
              placed.lists.tiles[static_cast<std::size_t>(i)].segments_begin;
    walk_transposed_block_tile(tile_of(i), [&](const QuerySegment& segment) { *to++ = segment; });
  }
  return placed.lists;
}

/// The rows that see each key; those of tokens that do not exist are taken for seen.
std::array<std::uint64_t, kTileKeys> words_of(const TransposedLists& lists,
                                              const QuerySegment& segment, std::int64_t tokens) {
  const std::int64_t rows =
      (tokens - std::int64_t{segment.q_tile} * lists.tile_tokens()) * lists.pack;
  const std::uint64_t none = rows >= kBackwardRows ? 0 : ~((std::uint64_t{1} << rows) - 1);
  std::array<std::uint64_t, kTileKeys> words{};
  for (int key = 0; key < kTileKeys; ++key) {
    if ((seen_halves(segment.pattern) >> (key / kSubTileKeys) & 1) == 0) continue;
    const std::int64_t word = std::int64_t{pattern_index(segment.pattern)} * kTileKeys + key;
    const std::uint64_t seen =
        segment.pattern < 0 ? ~std::uint64_t{0} : lists.patterns[static_cast<std::size_t>(word)];
    words[static_cast<std::size_t>(key)] = seen == 0 ? 0 : seen | none;
  }
  return words;
}

using Visits = std::vector<std::pair<std::int32_t, std::array<std::uint64_t, kTileKeys>>>;
Visits visits_of(const TransposedLists& lists, const KeyTile& tile, std::int64_t tokens) {
  Visits visits;
  for (const QuerySegment& one : lists.segments_of(tile)) {
    for (std::int32_t left = one.count; left > 0; --left) {
      QuerySegment visit = one;
      visit.q_tile += left - 1;
      visits.emplace_back(visit.q_tile, words_of(lists, visit, tokens));
    }
  }
  return visits;
}

/// Whether the kernel finds the segments of each item: it takes those from the first one on that
/// begins below the item's end, up to one that lies outside.
bool items_find_segments(const TransposedLists& lists) {
  for (std::int64_t list = 0; list < lists.list_heads; ++list) {
    for (const WorkItem& item : lists.order) {
      const auto place = static_cast<std::size_t>(list * lists.tiles_per_list + item.tile);
      bool begun = false;
      bool ended = false;
      for (const QuerySegment& segment : lists.segments_of(lists.tiles[place])) {
        begun |= segment.q_tile < item.q_end;
        const bool inside = std::max(segment.q_tile, item.q_begin) <
                            std::min(segment.q_tile + segment.count, item.q_end);
        if (begun && !inside) ended = true;
        if (inside && (!begun || ended)) return false;
      }
    }
  }
  return true;
}

/// A mask of uniform blocks, and a pack for which its lists can be made from bits.
struct DrawnMask {
  std::int64_t q_tokens;
  Mask mask;
  int pack;
  BackwardWork work;
};
DrawnMask draw_mask() {
  const auto block = *rc::gen::element<std::int64_t>(64, 128, 192);
  const auto q_tokens = *rc::gen::inRange<std::int64_t>(1, 3000);
  const std::int64_t k_tokens = block * *rc::gen::inRange<std::int64_t>(1, 9);
  Mask mask = Mask::from_blocks(
      q_tokens, k_tokens, {{0, q_tokens, 0, k_tokens, MaskSliceType::full}},
      draw_blocks({.q_bounds = uniform_bounds(q_tokens, *rc::gen::element<std::int64_t>(64, 128)),
                   .k_bounds = uniform_bounds(k_tokens, block),
                   .heads = *rc::gen::inRange(1, 4),
                   .density = *rc::gen::element(0.2, 0.5, 0.9, 1.0)},
                  *rc::gen::inRange<std::uint64_t>(0, 1000)));
  const int pack = *rc::gen::element(1, 2, 4, 8);
  RC_PRE(has_block_plan(mask, pack));
  BackwardWork work;
  work.heads_k = mask.heads();
  work.heads_q = mask.heads() * pack * *rc::gen::inRange(1, 3);
  work.chunk_visits = *rc::gen::element(8, 512);
  return {q_tokens, std::move(mask), pack, work};
}

RC_GTEST_PROP(SliceTransposedBlockLists, AreThoseOfTheHost, ()) {
  const auto [q_tokens, mask, pack, work] = draw_mask();
  const TransposedLists host = make_transposed_lists(mask, pack, work);
  const TransposedLists made = lists_from_bits(mask, pack, work);
  RC_ASSERT(made.pack == host.pack);
  RC_ASSERT(made.list_heads == host.list_heads);
  RC_ASSERT(made.tiles_per_list == host.tiles_per_list);
  RC_ASSERT(made.tiles.size() == host.tiles.size());
  for (std::size_t i = 0; i < host.tiles.size(); ++i) {
    const KeyTile& a = made.tiles[i];
    const KeyTile& b = host.tiles[i];
    RC_ASSERT(a.k_begin == b.k_begin);
    RC_ASSERT(a.k_end == b.k_end);
    RC_ASSERT(a.q_tiles == b.q_tiles);
    RC_ASSERT(a.q_begin == b.q_begin);
    RC_ASSERT(a.q_end == b.q_end);
    RC_ASSERT(visits_of(made, a, q_tokens) == visits_of(host, b, q_tokens));
  }
  RC_ASSERT(made.items_per_order == host.items_per_order);
  RC_ASSERT(made.order.size() == host.order.size());
  for (std::size_t i = 0; i < host.order.size(); ++i) {
    RC_ASSERT(made.order[i].tile == host.order[i].tile);
    RC_ASSERT(made.order[i].q_begin == host.order[i].q_begin);
    RC_ASSERT(made.order[i].q_end == host.order[i].q_end);
    RC_ASSERT(made.order[i].split == host.order[i].split);
  }
  RC_ASSERT(made.split_keys.size() == host.split_keys.size());
  RC_ASSERT(made.section_heads == host.section_heads);
}

RC_GTEST_PROP(SliceTransposedBlockLists, ThatTellHalvesVisitTheSame, ()) {
  auto [q_tokens, mask, pack, work] = draw_mask();
  const TransposedLists plain = lists_from_bits(mask, pack, work);
  work.tells_halves = true;
  const TransposedLists host = make_transposed_lists(mask, pack, work);
  const TransposedLists made = lists_from_bits(mask, pack, work);
  RC_CLASSIFY(host.tells_halves, "host");
  RC_ASSERT(made.tells_halves ==
            (transposed_block_plan(mask, pack, work).block_sub_tiles % 2 != 0));
  for (const TransposedLists* lists : {&host, &made}) {
    for (std::size_t i = 0; i < plain.tiles.size(); ++i) {
      Visits visits = visits_of(*lists, lists->tiles[i], q_tokens);
      std::ranges::stable_sort(visits, std::greater<>{}, &Visits::value_type::first);
      RC_ASSERT(visits == visits_of(plain, plain.tiles[i], q_tokens));
      RC_ASSERT(lists->tiles[i].q_tiles == plain.tiles[i].q_tiles);
      RC_ASSERT(lists->tiles[i].q_begin == plain.tiles[i].q_begin);
      RC_ASSERT(lists->tiles[i].q_end == plain.tiles[i].q_end);
    }
    RC_ASSERT(lists->order.size() == plain.order.size());
    RC_ASSERT(items_find_segments(*lists));
  }
}

TEST(SliceTransposedBlockLists, TakeHalvesInTurn) {
  // Query blocks 0 to 5 keep, of two key blocks: both, the first, the first, the second, the
  // second, both.
  BlockLists blocks;
  blocks.q_bounds = uniform_bounds(384, 64);
  blocks.k_bounds = uniform_bounds(128, 64);
  blocks.offsets = {0, 2, 3, 4, 5, 6, 8};
  blocks.indices = {0, 1, 0, 0, 1, 1, 0, 1};
  const Mask mask =
      Mask::from_blocks(384, 128, {{0, 384, 0, 128, MaskSliceType::full}}, std::move(blocks));
  const TransposedLists lists = lists_from_bits(mask, 1, {.tells_halves = true});
  std::vector<std::pair<std::int32_t, std::int32_t>> tiles;
  for (const QuerySegment& segment : lists.segments) {
    EXPECT_EQ(segment.count, 1);
    tiles.emplace_back(segment.q_tile, segment.pattern);
  }
  const std::vector<std::pair<std::int32_t, std::int32_t>> expected = {
      {5, kFull}, {0, kFull}, {2, kFirstHalf}, {4, kSecondHalf}, {1, kFirstHalf}, {3, kSecondHalf}};
  EXPECT_EQ(tiles, expected);
}

TEST(SliceTransposedBlockLists, JoinBlocksBesideEachOther) {
  // 256 queries in blocks of 64, three of which keep both key blocks of the only tile.
  BlockLists blocks;
  blocks.q_bounds = uniform_bounds(256, 64);
  blocks.k_bounds = uniform_bounds(128, 64);
  blocks.offsets = {0, 2, 4, 5, 7};
  blocks.indices = {0, 1, 0, 1, 1, 0, 1};
  const Mask mask =
      Mask::from_blocks(256, 128, {{0, 256, 0, 128, MaskSliceType::full}}, std::move(blocks));
  const TransposedLists lists = lists_from_bits(mask, 8, {.heads_q = 8});
  ASSERT_EQ(lists.tiles.size(), 1U);
  ASSERT_EQ(lists.segments.size(), 3U);
  EXPECT_EQ(lists.segments[0].q_tile, 24);
  EXPECT_EQ(lists.segments[0].count, 8);
  EXPECT_EQ(lists.segments[0].pattern, kFull);
  EXPECT_EQ(lists.segments[1].q_tile, 16);
  EXPECT_EQ(lists.segments[1].pattern, kSecondSubTile);
  EXPECT_EQ(lists.segments[2].q_tile, 0);
  EXPECT_EQ(lists.segments[2].count, 16);
  EXPECT_EQ(lists.tiles[0].q_begin, 0);
  EXPECT_EQ(lists.tiles[0].q_end, 32);
}

}  // namespace
}  // namespace longca::slice
