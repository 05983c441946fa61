#include "attention/kernels/slice/planner/ordered_finish.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "attention/kernels/slice/planner/section_heads.h"
#include "attention/kernels/slice/random_masks.h"

namespace longca::slice {
namespace {

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

/// Key tiles that one run of query tiles each sees, and an item for each run.
class Rows {
 public:
  explicit Rows(const BackwardWork& work) : work_(work) { lists_.pack = 8; }

  void add_tile(std::int32_t q_begin, std::int32_t q_end) {
    const auto segment = static_cast<std::int32_t>(lists_.segments.size());
    const auto keys = static_cast<std::int32_t>(lists_.tiles.size()) * kTileKeys;
    lists_.segments.push_back({q_begin, q_end - q_begin, kFull, 0});
    lists_.tiles.push_back(
        {keys, keys + kTileKeys, segment, 1, q_end - q_begin, q_begin, q_end, 0});
    ++lists_.tiles_per_list;
    add_item(q_begin, q_end, -1);
  }
  /// Of the last tile.
  void add_item(std::int32_t q_begin, std::int32_t q_end, std::int32_t split) {
    const auto tile = static_cast<std::int32_t>(lists_.tiles.size()) - 1;
    const std::int64_t visits = q_end - q_begin;
    items_.push_back({{tile, q_begin, q_end, split}, visits, item_cycles(rates(), visits), 0});
  }
  void split_last_tile(std::int32_t at) {
    const WorkItem whole = items_.back().item;
    items_.pop_back();
    add_item(at, whole.q_end, 0);
    add_item(whole.q_begin, at, 0);
  }

  std::int64_t cycles() const { return OrderedFinish(lists_, items_, work_, kAll).cycles(1); }
  std::int64_t item(std::int64_t visits) const { return item_cycles(rates(), visits); }
  std::int64_t visit() const { return rates().query_tile_cycles; }
  const cost::SliceBackwardCycles& rates() const { return work_.platform.slice.backward; }

 private:
  BackwardWork work_;
  TransposedLists lists_;
  std::vector<CostedItem> items_;
};

constexpr int kHeads = 8;
BackwardWork on_ctas(int ctas) {
  return {.heads_q = kHeads, .heads_k = 1, .ctas = ctas, .ordered = true};
}

TEST(OrderedFinish, ItemsOfTheSameRowsFollowEachOtherByAnAddition) {
  Rows rows(on_ctas(4));
  for (int i = 0; i < 4; ++i) rows.add_tile(0, 100);
  EXPECT_EQ(rows.cycles(), rows.item(100) + 3 * rows.visit());
}

TEST(OrderedFinish, ItemsOfOtherRowsDoNotWait) {
  Rows rows(on_ctas(3));
  for (const int begin : {0, 100, 200}) rows.add_tile(begin, begin + 100);
  EXPECT_EQ(rows.cycles(), rows.item(100));
}

TEST(OrderedFinish, AnItemThatBeginsBelowWaitsForTheOneAboveToComeDown) {
  Rows below(on_ctas(2));
  below.add_tile(50, 150);
  below.add_tile(0, 100);
  EXPECT_EQ(below.cycles(), below.item(100) + 51 * below.visit());
  Rows above(on_ctas(2));
  above.add_tile(0, 100);
  above.add_tile(50, 150);
  EXPECT_EQ(above.cycles(), above.item(100));
}

TEST(OrderedFinish, PartsOfAKeyTileAreAddedOneAfterTheOther) {
  Rows rows(on_ctas(2));
  rows.add_tile(0, 110);
  rows.split_last_tile(10);
  EXPECT_EQ(rows.cycles(), rows.item(100) + 2 * rows.rates().add_keys_cycles);
}

RC_GTEST_PROP(OrderedFinish, IsNeverBeforeThatOfFreeWorkAndTheSameOnOneCta, ()) {
  const Mask mask = random_long_mask();
  if (mask.blocks()) return;
  const int pack = *rc::gen::element(1, 2, 4, 8);
  BackwardWork work = {.heads_q = 2 * pack * *rc::gen::element(1, 4),
                       .heads_k = 2,
                       .ctas = *rc::gen::element(1, 4, 132),
                       .ordered = true,
                       .has_chunks = false};
  TransposedLists lists = make_transposed_lists(mask, pack, work);
  const auto items = make_items(work, lists).front();
  OrderedFinish of_both(lists, items, work, kAll);
  RC_ASSERT(of_both.even_cycles() == even_cycles(items, work));
  for (const int heads : {1, 2}) {
    const std::int64_t free = finish_time(items, work, heads);
    const std::int64_t ordered = OrderedFinish(lists, items, work, kAll).cycles(heads);
    RC_ASSERT(free >= even_cycles(items, work));
    RC_ASSERT(ordered >= free);
    RC_ASSERT(of_both.cycles(heads) == ordered);
    if (work.ctas == 1) RC_ASSERT(ordered == free);
  }
}

}  // namespace
}  // namespace longca::slice
