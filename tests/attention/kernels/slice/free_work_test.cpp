#include "attention/kernels/slice/planner/free_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "attention/kernels/slice/planner/section_heads.h"
#include "attention/kernels/slice/planner/transposed_lists.h"
#include "mask/generators.h"

namespace longca::slice {
namespace {

const BackwardWork kWork = {.heads_q = 64, .heads_k = 8, .ctas = 132};
constexpr int kPack = 8;

Mask mask_of(const std::string& name, std::int64_t tokens) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = tokens;
  return generate_mask(spec).mask;
}

/// The items of a static mask with what they cost, counted segment by segment.
std::vector<CostedItem> items_of(const TransposedLists& lists) {
  std::vector<CostedItem> items;
  for (const WorkItem& item : lists.order) {
    const KeyTile& tile = lists.tiles[static_cast<std::size_t>(item.tile)];
    CostedItem costed{item, 0, 0, -1};
    for (std::int32_t i = 0; i < tile.segments; ++i) {
      const QuerySegment& segment = lists.segments[static_cast<std::size_t>(tile.segments_begin) +
                                                   static_cast<std::size_t>(i)];
      costed.visits += std::max(0, std::min(segment.q_tile + segment.count, item.q_end) -
                                       std::max(segment.q_tile, item.q_begin));
    }
    const cost::SliceBackwardCycles& rates = kWork.platform.slice.backward;
    costed.cycles = item.split < 0 ? item_cycles(rates, costed.visits)
                                   : split_item_cycles(rates, costed.visits);
    items.push_back(costed);
  }
  return items;
}

/// How much longer the last CTA takes than all would, did they finish together.
double lateness(const Mask& mask) {
  const TransposedLists lists = make_transposed_lists(mask, kPack, kWork);
  const std::vector<CostedItem> items = items_of(lists);
  std::int64_t sum = 0;
  for (const CostedItem& item : items) sum += item.cycles * kWork.heads_k;
  return static_cast<double>(finish_time(items, kWork, lists.section_heads)) * kWork.ctas /
         static_cast<double>(sum);
}

TEST(SliceFreeWork, LetCtasFinishTogetherOnPartsOfAMask) {
  // As ranks of context parallelism see them; whole 1.28 and 1.45.
  const auto part_of = [](const char* name, Range rows, Range keys) {
    return mask_of(name, 8192).sub_mask(std::span(&rows, 1), std::span(&keys, 1));
  };
  EXPECT_LT(lateness(part_of("document", {6000, 7500}, {4000, 8000})), 1.06);
  // Smaller chunks bring this one to 1.104, and cuts gain too little beside these.
  EXPECT_LT(lateness(part_of("causal_document", {5000, 8000}, {5000, 8000})), 1.105);
}

TEST(SliceFreeWork, CutAllKeysOfFewRows) {
  // The end of a causal document: 33 key tiles of 85 query tiles and fewer; 1.26 if 32 may be cut.
  EXPECT_LT(lateness(Mask::from_slices(679, 4167, {{0, 679, 0, 4167, MaskSliceType::causal}})),
            1.06);
}

TEST(SliceFreeWork, CutNothingForLittle) {
  // By a model that knows no better: cuts would bring it from 1.10 to 1.01.
  const TransposedLists lists =
      make_transposed_lists(mask_of("sliding_window_causal", 8192), 1, kWork);
  EXPECT_EQ(lists.order.size(), lists.tiles.size());
}

TEST(SliceFreeWork, CutForLessWhereFewRowsSeeManyKeys) {
  // The last rows of a long document on their own, as a rank has them: 1.10 without cuts.
  const Range rows = {3500, 6000};
  const Range keys = {0, 6000};
  const Mask last = mask_of("causal", 6000).sub_mask(std::span(&rows, 1), std::span(&keys, 1));
  EXPECT_LT(lateness(last), 1.05);
  // 2.4 keys a row.
  cost::Platform platform = cost::default_platform();
  const auto items = [&](double min_keys) {
    platform.slice.backward.few_rows_min_keys = min_keys;
    const BackwardWork work = {.platform = platform, .heads_q = 64, .heads_k = 8, .ctas = 132};
    return make_transposed_lists(last, kPack, work).order.size();
  };
  EXPECT_EQ(items(1.5), items(2.3));
  EXPECT_GT(items(1.5), items(2.5)) << "more cuts";
}

/// The KV heads in work at a time for a card with so much L2, of which rows may take this part.
int heads_with_cache(const Mask& mask, std::int64_t cache_bytes, double kept_share) {
  cost::Platform platform = cost::default_platform();
  platform.device.cache_bytes = cache_bytes;
  platform.slice.backward.kept_cache_share = kept_share;
  const BackwardWork work = {.platform = platform, .heads_q = 64, .heads_k = 8, .ctas = 132};
  return make_transposed_lists(mask, kPack, work).section_heads;
}

TEST(SliceFreeWork, ShortenTailsByHeadsWhoseRowsStayInL2) {
  // All eight heads, with cuts, end soonest. The longest item sees 32 query tiles, 2 MB a KV head:
  // eight heads take 16 MB.
  const Mask mask = mask_of("causal", 1024);
  EXPECT_EQ(heads_with_cache(mask, std::int64_t{20} << 20, 0.8), 8);
  EXPECT_EQ(heads_with_cache(mask, std::int64_t{19} << 20, 0.8), 1);
  EXPECT_EQ(heads_with_cache(mask, std::int64_t{20} << 20, 0.7), 1);
}

TEST(SliceFreeWork, ShortenTailsBySmallerChunks) {
  // Of chunks of 256 query tiles the last CTA would end a quarter later than all do at best.
  const Mask mask = mask_of("block_causal_document", 4096);
  const TransposedLists lists = make_transposed_lists(mask, kPack, kWork);
  EXPECT_LT(lateness(mask), 1.06);
  for (const WorkItem& item : lists.order) EXPECT_LE(item.q_end - item.q_begin, 96);
}

TEST(SliceFreeWork, KeepWholeChunksWhereSmallerOnesGainNothing) {
  const TransposedLists lists = make_transposed_lists(mask_of("full", 8192), kPack, kWork);
  for (const WorkItem& item : lists.order) EXPECT_EQ(item.q_end - item.q_begin, 256);
}

/// The lists of `work` for the default platform with other figures of chunks.
TransposedLists lists_with_chunks(const Mask& mask, double min_chunks, double min_chunks_in_step) {
  cost::Platform platform = cost::default_platform();
  platform.slice.backward.min_chunks = min_chunks;
  platform.slice.backward.min_chunks_in_step = min_chunks_in_step;
  const BackwardWork work = {.platform = platform, .heads_q = 64, .heads_k = 8, .ctas = 32};
  return make_transposed_lists(mask, kPack, work);
}

TEST(SliceFreeWork, SplitKeyTilesOfEnoughChunks) {
  const Mask in_step = mask_of("full", 4096);  // two chunks
  EXPECT_TRUE(lists_with_chunks(in_step, 1.5, 2).split_keys.empty());
  EXPECT_EQ(lists_with_chunks(in_step, 1.5, 1.9).split_keys.size(), 32U);
  const Mask out_of_step = mask_of("causal", 4096);  // two at most
  EXPECT_TRUE(lists_with_chunks(out_of_step, 2, 1).split_keys.empty());
  EXPECT_FALSE(lists_with_chunks(out_of_step, 1.5, 9).split_keys.empty());
}

TEST(SliceFreeWork, TakeEarlierKeysFirstUnderAWindow) {
  // So each CTA begins above the rows of the one before.
  const TransposedLists lists = make_transposed_lists(mask_of("sliding_window", 8192), 1, kWork);
  ASSERT_EQ(lists.order.size(), 64U);
  for (std::size_t i = 9; i < 50; ++i) {  // windows that no end of the sequence cuts
    EXPECT_LT(lists.order[i].tile, lists.order[i + 1].tile) << i;
  }
}

TEST(SliceFreeWork, CutNothingWhereCtasFinishTogether) {
  BackwardWork work = kWork;
  work.ctas = 32;
  const TransposedLists lists = make_transposed_lists(mask_of("full", 4096), kPack, work);
  EXPECT_EQ(lists.order.size(), lists.tiles.size());
  EXPECT_TRUE(lists.split_keys.empty());
}

}  // namespace
}  // namespace longca::slice
