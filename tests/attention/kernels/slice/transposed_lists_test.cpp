#include "attention/kernels/slice/planner/transposed_lists.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <span>

#include "attention/kernels/slice/planner/pack.h"
#include "attention/kernels/slice/random_masks.h"
#include "mask/generators.h"

namespace longca::slice {
namespace {

/// The items of a list where every list has a KV head of its own.
std::span<const WorkItem> order_of(const TransposedLists& lists, std::int64_t list) {
  const auto count = static_cast<std::size_t>(lists.items_per_order);
  return std::span(lists.order).subspan(static_cast<std::size_t>(list) * count, count);
}

/// How often a list visits every cell, read from it as a kernel does.
class Visits {
 public:
  Visits(const TransposedLists& lists, std::int64_t list, const Mask& mask,
         int tile_keys = kTileKeys)
      : lists_(lists),
        tile_keys_(tile_keys),
        q_tokens_(mask.q_tokens()),
        k_tokens_(mask.k_tokens()),
        cells_(static_cast<std::size_t>(q_tokens_ * k_tokens_)),
        owners_(static_cast<std::size_t>(k_tokens_)) {
    for (const WorkItem& item : order_of(lists, list)) {
      visit(lists.tiles[static_cast<std::size_t>(list * lists.tiles_per_list + item.tile)], item);
    }
    for (const KeyRange& keys : lists.split_keys) own(keys.begin, keys.end);
  }

  const std::vector<std::uint8_t>& cells() const { return cells_; }
  /// Whether dK and dV of each key are written once: by an item or from the accumulators of a split
  /// tile.
  bool every_key_has_one_owner() const {
    return std::all_of(owners_.begin(), owners_.end(), [](int count) { return count == 1; });
  }
  /// Cells outside the mask, or malformed entries.
  int faults() const { return faults_; }

 private:
  void own(std::int32_t begin, std::int32_t end) {
    for (std::int32_t k = begin; k < end; ++k) ++owners_[static_cast<std::size_t>(k)];
  }

  void visit(const KeyTile& tile, const WorkItem& item) {
    faults_ += tile.k_begin < 0 || tile.k_end <= tile.k_begin || tile.k_end > k_tokens_ ||
               tile.k_end - tile.k_begin > tile_keys_;
    if (item.split < 0) {
      own(tile.k_begin, tile.k_end);
    } else {
      const KeyRange keys = lists_.split_keys[static_cast<std::size_t>(item.split)];
      faults_ += keys.begin != tile.k_begin || keys.end != tile.k_end;
    }
    std::int32_t q_tiles = 0;
    for (const QuerySegment& segment : lists_.segments_of(tile)) {
      faults_ += segment.count <= 0 || segment.q_tile < tile.q_begin ||
                 segment.q_tile + segment.count > tile.q_end;
      q_tiles += segment.count;
    }
    faults_ += q_tiles != tile.q_tiles;
    // As the kernel finds them: from the first that begins below the item's end to one outside.
    const std::span<const QuerySegment> segments = lists_.segments_of(tile);
    auto next = std::ranges::partition_point(
        segments, [&](const QuerySegment& segment) { return segment.q_tile >= item.q_end; });
    for (; next != segments.end(); ++next) {
      const std::int32_t begin = std::max(next->q_tile, item.q_begin);
      const std::int32_t end = std::min(next->q_tile + next->count, item.q_end);
      if (begin >= end) break;
      for (std::int32_t j = begin; j < end; ++j) visit(tile, *next, j);
    }
  }

  void visit(const KeyTile& tile, const QuerySegment& segment, std::int64_t q_tile) {
    const bool has_pattern = segment.pattern >= 0;
    const int halves = seen_halves(segment.pattern);
    faults_ += segment.pattern == kFull && tile.k_end - tile.k_begin != tile_keys_;
    faults_ += halves != 3 && !lists_.tells_halves;
    const int keys = has_pattern ? kTileKeys : tile_keys_;
    for (int key = 0; key < keys; ++key) {
      const std::uint64_t seen =
          has_pattern
              ? lists_
                    .patterns[static_cast<std::size_t>(pattern_index(segment.pattern)) * kTileKeys +
                              static_cast<std::size_t>(key)]
              : ~std::uint64_t{0};
      if ((halves >> (key / kSubTileKeys) & 1) == 0) {
        faults_ += has_pattern && seen != 0;
        continue;
      }
      for (int row = 0; row < kBackwardRows; ++row) {
        const std::int64_t token = (q_tile * kBackwardRows + row) / lists_.pack;
        if ((seen >> row & 1) == 0 || token >= q_tokens_) continue;
        visit_row(token, tile.k_begin + key, row % lists_.pack);
      }
    }
  }

  /// Counts a head of the pack in a bit of its own: all of them see the cell.
  void visit_row(std::int64_t token, std::int64_t key, int head) {
    if (key >= k_tokens_) {
      ++faults_;
      return;
    }
    auto& cell = cells_[static_cast<std::size_t>(token * k_tokens_ + key)];
    faults_ += (cell >> head & 1) != 0;
    cell = static_cast<std::uint8_t>(cell | 1 << head);
  }

  const TransposedLists& lists_;
  int tile_keys_;
  std::int64_t q_tokens_;
  std::int64_t k_tokens_;
  std::vector<std::uint8_t> cells_;
  std::vector<int> owners_;
  int faults_ = 0;
};

BackwardWork random_work(const Mask& mask, int pack) {
  BackwardWork work;
  work.heads_k = mask.heads();
  work.heads_q = mask.heads() * pack * *rc::gen::inRange(1, 3);
  work.ctas = *rc::gen::element(1, 4, 132);
  work.chunk_visits = *rc::gen::element<std::int64_t>(1, 3, 10, 1024);
  work.tile_keys = *rc::gen::element(kSubTileKeys, kTileKeys);
  work.tells_halves = work.tile_keys == kTileKeys && *rc::gen::arbitrary<bool>();
  return work;
}

RC_GTEST_PROP(SliceTransposedLists, VisitEveryAllowedCellOnceAndNoOther, ()) {
  const Mask mask = random_long_mask();
  const int pack = *rc::gen::element(1, 2, 4, 8);
  const BackwardWork work = random_work(mask, pack);
  const TransposedLists lists = make_transposed_lists(mask, pack, work);
  RC_ASSERT(lists.list_heads == mask.heads());
  RC_ASSERT(lists.tiles.size() ==
            static_cast<std::size_t>(lists.list_heads * lists.tiles_per_list));
  for (int list = 0; list < mask.heads(); ++list) {
    const Visits visits(lists, list, mask, work.tile_keys);
    RC_ASSERT(visits.faults() == 0);
    RC_ASSERT(visits.every_key_has_one_owner());
    std::vector<std::uint8_t> expected = mask.dense(list);
    for (auto& cell : expected) cell = static_cast<std::uint8_t>(cell * ((1 << pack) - 1));
    RC_ASSERT(visits.cells() == expected);
  }
}

RC_GTEST_PROP(SliceTransposedLists, OrderTheWorkOfEveryKvHeadAlike, ()) {
  const Mask mask = random_long_mask();
  const int pack = *rc::gen::element(1, 2, 4, 8);
  const BackwardWork work = random_work(mask, pack);
  const TransposedLists lists = make_transposed_lists(mask, pack, work);
  RC_ASSERT(lists.order.size() ==
            static_cast<std::size_t>(lists.items_per_order * lists.list_heads));
  RC_ASSERT(work.heads_k % lists.section_heads == 0);
  // What is shared has one place for all heads.
  const auto places = [&](std::int64_t list) {
    std::vector<std::pair<std::int32_t, std::int32_t>> shared;
    for (const WorkItem& item : order_of(lists, list)) shared.push_back({item.tile, item.split});
    std::sort(shared.begin(), shared.end());
    return shared;
  };
  for (std::int64_t list = 1; list < lists.list_heads; ++list) {
    RC_ASSERT(places(list) == places(0));
  }
}

/// Numbers of additions in the order of the work, as the kernel waits for them.
class Additions {
 public:
  Additions(const TransposedLists& lists, std::int64_t q_tiles)
      : lists_(lists),
        to_queries_(static_cast<std::size_t>(lists.list_heads),
                    std::vector<std::int32_t>(static_cast<std::size_t>(q_tiles))),
        to_keys_(lists.order.size() / static_cast<std::size_t>(lists.items_per_order),
                 std::vector<std::int32_t>(static_cast<std::size_t>(lists.tiles_per_list))) {}

  /// Takes all items; how many numbers are not those of the additions before.
  int faults() {
    const std::size_t lists_per_order = to_queries_.size() / to_keys_.size();
    for (std::size_t order = 0; order < to_keys_.size(); ++order) {
      for (std::int64_t i = 0; i < lists_.items_per_order; ++i) {
        const std::size_t place =
            order * static_cast<std::size_t>(lists_.items_per_order) + static_cast<std::size_t>(i);
        const WorkItem& item = lists_.order[place];
        bool visits = false;
        for (std::size_t list = 0; list < lists_per_order; ++list) {
          visits |= visit(order * lists_per_order + list, item);
        }
        std::int32_t& parts = to_keys_[order][static_cast<std::size_t>(item.tile)];
        if (item.split >= 0) faults_ += lists_.prior_parts[place] != parts;
        parts += visits ? 1 : 0;
      }
    }
    return faults_;
  }

 private:
  bool visit(std::size_t list, const WorkItem& item) {
    const KeyTile& tile = lists_.tiles[list * static_cast<std::size_t>(lists_.tiles_per_list) +
                                       static_cast<std::size_t>(item.tile)];
    bool visits = false;
    for (const QuerySegment& segment : lists_.segments_of(tile)) {
      for (std::int32_t q = std::max(segment.q_tile, item.q_begin);
           q < std::min(segment.q_tile + segment.count, item.q_end); ++q) {
        faults_ += to_queries_[list][static_cast<std::size_t>(q)]++ != segment.prior_adds;
        visits = true;
      }
    }
    return visits;
  }

  const TransposedLists& lists_;
  std::vector<std::vector<std::int32_t>> to_queries_;  ///< [list][query tile]
  std::vector<std::vector<std::int32_t>> to_keys_;     ///< [order][key tile]
  int faults_ = 0;
};

RC_GTEST_PROP(SliceTransposedLists, RankTheAdditionsToEveryTileInTheirOrder, ()) {
  const Mask mask = random_long_mask();
  const int pack = *rc::gen::element(1, 2, 4, 8);
  BackwardWork work = random_work(mask, pack);
  work.ordered = true;
  work.has_chunks = *rc::gen::arbitrary<bool>();
  const TransposedLists lists = make_transposed_lists(mask, pack, work);
  RC_CLASSIFY(!lists.split_keys.empty(), "split");
  RC_ASSERT(work.has_chunks || lists.split_keys.empty());
  RC_ASSERT(lists.prior_parts.size() == (lists.split_keys.empty() ? 0 : lists.order.size()));
  for (std::int64_t list = 0; list < lists.list_heads; ++list) {
    RC_ASSERT(Visits(lists, list, mask, work.tile_keys).faults() == 0);
  }
  if (lists.order.empty()) return;
  const std::int64_t q_tiles = (mask.q_tokens() + lists.tile_tokens() - 1) / lists.tile_tokens();
  RC_ASSERT(Additions(lists, q_tiles).faults() == 0);
}

Mask mask_of(const std::string& name, std::int64_t tokens) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = tokens;
  return generate_mask(spec).mask;
}

const BackwardWork kWork = {.heads_q = 64, .heads_k = 8, .ctas = 132};

TEST(SliceTransposedLists, AreOneRunPerKeyTileWhereAllIsSeen) {
  for (const int pack : {1, 2, 4, 8}) {
    const TransposedLists lists = make_transposed_lists(mask_of("full", 32768), pack, kWork);
    EXPECT_TRUE(lists.patterns.empty());
    ASSERT_EQ(lists.tiles.size(), 256U);
    for (const KeyTile& tile : lists.tiles) {
      EXPECT_EQ(tile.segments, 1);
      EXPECT_EQ(tile.q_tiles, 512 * pack);
    }
  }
}

TEST(SliceTransposedLists, ShareThePatternsOfADiagonal) {
  const TransposedLists lists = make_transposed_lists(mask_of("causal", 64 * 1024), 8, kWork);
  ASSERT_EQ(lists.tiles.size(), 512U);
  EXPECT_EQ(lists.patterns.size(), 16U * kTileKeys);  // 8 tokens each of the diagonal's 128
}

/// Under a causal mask 8 of a key tile's first 16 query tiles see its first half alone.
TEST(SliceTransposedLists, TellHalvesWhereManyVisitsSeeOne) {
  BackwardWork work = kWork;
  work.tells_halves = true;
  const TransposedLists many = make_transposed_lists(mask_of("shared_question", 8192), 8, work);
  const TransposedLists few = make_transposed_lists(mask_of("causal", 8192), 8, work);
  EXPECT_TRUE(many.tells_halves);
  EXPECT_FALSE(few.tells_halves);
  const auto halves = [](const TransposedLists& lists) {
    return std::ranges::count_if(lists.segments, [](const QuerySegment& segment) {
      return seen_halves(segment.pattern) != 3;
    });
  };
  EXPECT_GT(halves(many), 0);
  EXPECT_EQ(halves(few), 0);
  EXPECT_EQ(few.tiles.size(),
            make_transposed_lists(mask_of("causal", 8192), 8, kWork).tiles.size());
}

/// Tile and first query tile of each item.
std::vector<std::pair<std::int32_t, std::int32_t>> starts_of(const TransposedLists& lists) {
  std::vector<std::pair<std::int32_t, std::int32_t>> starts;
  for (const WorkItem& item : lists.order) starts.push_back({item.tile, item.q_begin});
  return starts;
}

TEST(SliceTransposedLists, GoThroughLongRowsInChunks) {
  const BackwardWork work = {.heads_q = 8, .heads_k = 1, .ctas = 1, .chunk_visits = 64};
  for (const int pack : {1, 8}) {  // 512 tokens are a chunk of 8 tiles for each head, or of 64
    const TransposedLists lists = make_transposed_lists(mask_of("full", 1400), pack, work);
    std::vector<std::pair<std::int32_t, std::int32_t>> expected;
    // The last chunk is short, and so is its work: it comes last.
    for (const std::int32_t token : {0, 512, 1024}) {
      for (std::int32_t tile = 0; tile < 11; ++tile) expected.push_back({tile, token / 64 * pack});
    }
    EXPECT_EQ(starts_of(lists), expected);
    EXPECT_EQ(lists.split_keys.size(), 11U);
  }
}

TEST(SliceTransposedLists, DoNotCutWhereSumsOfKeysWouldTakeTheRoomOrNobodyMay) {
  const Mask mask = mask_of("full", 128 * 1024);
  EXPECT_FALSE(make_transposed_lists(mask, 8, kWork).split_keys.empty());
  // Two float32 sums of 8 heads for dK and dV, one of 16 for dQ: no chunks, but for the end.
  const auto few = make_transposed_lists(mask, 1, {.heads_q = 16, .heads_k = 8});
  EXPECT_LE(few.split_keys.size(), few.tiles.size() / 4);
  BackwardWork whole = kWork;
  whole.has_chunks = false;
  EXPECT_TRUE(make_transposed_lists(mask, 8, whole).split_keys.empty());
}

TEST(SliceTransposedLists, KeepDocumentsTogetherWithTheLongestFirst) {
  const Mask mask = Mask::from_slices(1024, 1024,
                                      {{0, 256, 0, 256, MaskSliceType::causal},
                                       {256, 896, 256, 896, MaskSliceType::causal},
                                       {896, 1024, 896, 1024, MaskSliceType::causal}});
  const TransposedLists lists = make_transposed_lists(mask, 1, {.ctas = 1});
  std::vector<std::int32_t> tiles;
  for (const WorkItem& item : lists.order) tiles.push_back(item.tile);
  EXPECT_EQ(tiles, (std::vector<std::int32_t>{2, 3, 4, 5, 6, 0, 1, 7}));
}

TEST(SliceTransposedLists, TakeAllHeadsAtATimeWhereTheLastOnesTilesWouldFinishLate) {
  // 32 tiles × 8 heads on 132 CTAs: a head's long tiles must not come last.
  EXPECT_GT(make_transposed_lists(mask_of("causal", 4096), 8, kWork).section_heads, 1);
  EXPECT_EQ(make_transposed_lists(mask_of("causal", 128 * 1024), 8, kWork).section_heads, 1);
}

TEST(SliceTransposedLists, CountATileAsFullThatSlicesCoverTogether) {
  // Two slices of different keys, and two that meet at a diagonal inside the tile.
  const Mask beside = Mask::from_slices(
      64, 128, {{0, 64, 0, 50, MaskSliceType::full}, {0, 64, 50, 128, MaskSliceType::full}});
  EXPECT_TRUE(make_transposed_lists(beside, 1, {}).patterns.empty());
  const Mask diagonal = Mask::from_slices(64, 128,
                                          {{0, 64, 0, 64, MaskSliceType::causal},
                                           {0, 63, 1, 64, MaskSliceType::inverse_causal},
                                           {0, 64, 64, 128, MaskSliceType::full}});
  EXPECT_TRUE(make_transposed_lists(diagonal, 1, {}).patterns.empty());
}

TEST(SliceTransposedLists, StartTilesWithDocumentsThatHaveFewerThen) {
  // 100 keys and 250: the second would have a third tile if it began in the first one.
  const Mask mask = Mask::from_slices(
      350, 350, {{0, 100, 0, 100, MaskSliceType::full}, {100, 350, 100, 350, MaskSliceType::full}});
  const TransposedLists lists = make_transposed_lists(mask, 1, {});
  ASSERT_EQ(lists.tiles.size(), 3U);
  EXPECT_EQ(lists.tiles[0].k_end, 100);
  EXPECT_EQ(lists.tiles[1].k_end, 228);
}

TEST(SliceBackwardPack, IsOneOnlyWhereCtasWalkOutOfStep) {
  for (const char* name : {"sliding_window", "sliding_window_causal"}) {
    EXPECT_EQ(choose_backward_pack(mask_of(name, 32768), 8), 1) << name;
  }
  for (const char* name : {"full", "causal", "document", "causal_document", "shared_question",
                           "causal_blockwise", "prefix_lm_causal", "block_causal_document"}) {
    EXPECT_EQ(choose_backward_pack(mask_of(name, 32768), 8), 8) << name;
  }
  EXPECT_EQ(choose_backward_pack(mask_of("causal", 1000), 12), 4);
  EXPECT_EQ(choose_backward_pack(mask_of("causal", 512 * 1024), 8), 2);
  EXPECT_EQ(choose_backward_pack(mask_of("causal", 1000), 3), 1);
}

TEST(SliceTransposedLists, ShareKeysThatEveryoneSees) {
  const Mask mask = mask_of("shared_question", 8192);
  const TransposedLists lists = make_transposed_lists(mask, 8, kWork);
  EXPECT_FALSE(lists.split_keys.empty());
  std::int64_t sum = 0;
  std::int64_t most = 0;
  for (const KeyTile& tile : lists.tiles) sum += tile.q_tiles;
  for (const WorkItem& item : lists.order) {
    most = std::max<std::int64_t>(most, item.q_end - item.q_begin);
  }
  EXPECT_LE(most, sum * kWork.heads_k / (2 * kWork.ctas) + 1);
}

TEST(SliceUniquePatterns, AreThoseOfAllListsAndTiles) {
  MaskSpec spec;
  spec.name = "block_sparse_variable";
  spec.tokens = 4096;
  spec.heads_q = 16;
  spec.heads_k = 2;
  spec.block = 64;
  const TransposedLists lists = make_transposed_lists(generate_mask(spec).mask, 8,
                                                      {.heads_q = 16, .heads_k = 2, .ctas = 132});
  std::set<std::vector<std::uint64_t>> patterns;
  for (auto it = lists.patterns.begin(); it != lists.patterns.end(); it += kTileKeys) {
    EXPECT_TRUE(patterns.insert({it, it + kTileKeys}).second);
  }
  EXPECT_FALSE(patterns.empty());
}

}  // namespace
}  // namespace longca::slice
