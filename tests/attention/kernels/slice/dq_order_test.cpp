#include "attention/kernels/slice/planner/dq_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "attention/kernels/slice/random_masks.h"
#include "mask/generators.h"

namespace longca::slice {
namespace {

/// By a walk over the items as the kernel takes them: how often a region is visited, and when last.
struct Walk {
  std::vector<std::int32_t> visits;
  std::vector<std::int64_t> last;

  Walk(const TransposedLists& lists, const BackwardWork& work, std::int64_t q_tiles) {
    const int head_blocks = work.heads_q / work.heads_k / lists.pack;
    const auto regions = static_cast<std::size_t>(
        (q_tiles * head_blocks * work.heads_k + kRegionTiles - 1) / kRegionTiles);
    visits.assign(regions, 0);
    last.assign(regions, -1);
    const std::int64_t section_items = lists.items_per_order * lists.section_heads;
    for (std::int64_t id = 0; id < lists.items_per_order * work.heads_k; ++id) {
      const std::int64_t rest = id % section_items;
      const std::int64_t kv = id / section_items * lists.section_heads + rest % lists.section_heads;
      const WorkItem& item = lists.order[static_cast<std::size_t>(rest / lists.section_heads)];
      for (std::int64_t block = kv * head_blocks; block < (kv + 1) * head_blocks; ++block) {
        visit(lists, item, block * q_tiles, id / lists.section_heads);
      }
    }
  }

 private:
  void visit(const TransposedLists& lists, const WorkItem& item, std::int64_t first,
             std::int64_t when) {
    const KeyTile& tile = lists.tiles[static_cast<std::size_t>(item.tile)];
    for (std::int32_t i = 0; i < tile.segments; ++i) {
      const QuerySegment& segment =
          lists.segments[static_cast<std::size_t>(tile.segments_begin + i)];
      for (std::int32_t q = std::max(segment.q_tile, item.q_begin);
           q < std::min(segment.q_tile + segment.count, item.q_end); ++q) {
        const auto region = static_cast<std::size_t>((first + q) / kRegionTiles);
        ++visits[region];
        last[region] = std::max(last[region], when);
      }
    }
  }
};

std::int64_t query_tiles(const Mask& mask, const TransposedLists& lists) {
  return (mask.q_tokens() + lists.tile_tokens() - 1) / lists.tile_tokens();
}

std::vector<std::int32_t> sorted(std::vector<std::int32_t> numbers) {
  std::ranges::sort(numbers);
  return numbers;
}

void expect_regions(const Mask& mask, const TransposedLists& lists, const BackwardWork& work) {
  const Walk walk(lists, work, query_tiles(mask, lists));
  EXPECT_EQ(lists.region_visits, walk.visits);
  std::vector<std::int32_t> all(walk.visits.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
  EXPECT_EQ(sorted(lists.region_order), all);
}

RC_GTEST_PROP(SliceWriteOrder, CountsEveryVisit, ()) {
  const Mask mask = random_long_mask();
  const int pack = *rc::gen::element(1, 2, 4, 8);
  const int kv_heads = *rc::gen::element(1, 4);
  const BackwardWork work = {.heads_q = kv_heads * pack * *rc::gen::element(1, 32, 64),
                             .heads_k = kv_heads,
                             .ctas = *rc::gen::element(1, 20, 132),
                             .ordered = *rc::gen::arbitrary<bool>()};
  if (mask.blocks()) return;
  const TransposedLists lists = make_transposed_lists(mask, pack, work);
  if (lists.region_visits.empty()) return;
  expect_regions(mask, lists, work);
}

TEST(SliceWriteOrder, PutsFirstWhatIsDoneFirst) {
  for (const char* name : {"causal_document", "sliding_window_causal", "causal", "document"}) {
    SCOPED_TRACE(name);
    MaskSpec spec;
    spec.name = name;
    spec.tokens = 8192;
    const Mask mask = generate_mask(spec).mask;
    const BackwardWork work = {.heads_q = 64, .heads_k = 8};
    const TransposedLists lists = make_transposed_lists(mask, 8, work);
    ASSERT_EQ(lists.region_order.size(), 512U);
    expect_regions(mask, lists, work);
    const Walk walk(lists, work, query_tiles(mask, lists));
    const auto when = [&](std::int32_t region) {
      return walk.last[static_cast<std::size_t>(region)];
    };
    EXPECT_TRUE(std::ranges::is_sorted(lists.region_order, {}, when));
    EXPECT_LT(when(lists.region_order.front()), when(lists.region_order.back()));
  }
}

TEST(SliceWriteOrder, LeavesOutBlockListsFewTilesAndMuchWork) {
  const auto lists_of = [](const char* name, std::int64_t tokens, BackwardWork work) {
    MaskSpec spec;
    spec.name = name;
    spec.tokens = tokens;
    spec.heads_q = work.heads_q;
    spec.heads_k = work.heads_k;
    return make_transposed_lists(generate_mask(spec).mask, 1, work);
  };
  const BackwardWork work = {.heads_q = 64, .heads_k = 8};
  EXPECT_FALSE(lists_of("causal", 2048, work).region_order.empty());
  EXPECT_TRUE(lists_of("causal", 1024, work).region_order.empty());
  EXPECT_TRUE(lists_of("block_sparse", 2048, work).region_order.empty());
  const BackwardWork few_workers = {.heads_q = 64, .heads_k = 8, .ctas = 1};
  EXPECT_TRUE(lists_of("causal", 2048, few_workers).region_order.empty());
}

}  // namespace
}  // namespace longca::slice
