#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "attention/adapters/flashinfer/flashinfer.h"
#include "attention/adapters/flashinfer/pages.h"
#include "mask/generators.h"

namespace longca::flashinfer {
namespace {

Mask drawn(const std::string& name, std::int64_t tokens, int heads_q, int heads_k,
           std::int64_t block, double density, std::uint64_t seed) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = tokens;
  spec.heads_q = heads_q;
  spec.heads_k = heads_k;
  spec.block = block;
  spec.density = density;
  spec.seed = seed;
  return generate_mask(spec).mask;
}

/// The page numbers of all rows, by the definition.
std::vector<std::int64_t> all_pages(const BlockLists& blocks) {
  const std::int64_t page = page_size(blocks);
  std::vector<std::int64_t> pages;
  for (const std::int32_t block : blocks.indices) {
    const auto at = static_cast<std::size_t>(block);
    for (std::int64_t k = blocks.k_bounds[at]; k < blocks.k_bounds[at + 1]; k += page) {
      pages.push_back(k / page);
    }
  }
  return pages;
}

/// How often each cell of a head is computed, reading the work as the kernel does.
std::vector<int> computed(const WorkList& work, const BlockLists& blocks, int head,
                          std::int64_t tokens_q, std::int64_t tokens_k, int tile_q) {
  const std::vector<std::int64_t> pages = all_pages(blocks);
  const std::int64_t page = page_size(blocks);
  std::vector<int> times(static_cast<std::size_t>(tokens_q * tokens_k));
  for (std::size_t i = 0; i < work.tile.size(); ++i) {
    if (work.head[i] != head) continue;
    const std::int64_t begin = std::int64_t{work.tile[i]} * tile_q;
    const std::int64_t end = std::min<std::int64_t>(begin + tile_q, work.q_size[i]);
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t entry = 0; entry < work.keys[i]; ++entry) {
        const std::int64_t k =
            pages.at(static_cast<std::size_t>(work.first[i] + entry / page)) * page + entry % page;
        RC_ASSERT(k < tokens_k);
        ++times[static_cast<std::size_t>((work.q_begin[i] + row) * tokens_k + k)];
      }
    }
  }
  return times;
}

RC_GTEST_PROP(FlashinferWork, ComputesEachAllowedCellOnce, ()) {
  const auto tokens = *rc::gen::inRange<std::int64_t>(1, 90);
  const int heads_k = *rc::gen::inRange(1, 4);
  const int heads_q = heads_k * *rc::gen::inRange(1, 4);
  const auto block = *rc::gen::inRange<std::int64_t>(1, 40);
  const bool variable = *rc::gen::arbitrary<bool>() && block > 1;
  const double density = *rc::gen::inRange(1, 11) / 10.0;
  const int tile_q = *rc::gen::inRange(1, 20);
  const Mask mask = drawn(variable ? "block_sparse_variable" : "block_sparse", tokens, heads_q,
                          heads_k, block, density, *rc::gen::arbitrary<std::uint64_t>());
  const BlockLists& blocks = *mask.blocks();
  const WorkList work = assign_work(blocks, heads_q, tile_q, *rc::gen::inRange(1, 9));
  for (int head = 0; head < heads_q; ++head) {
    const auto dense = mask.dense(head * mask.heads() / heads_q);
    const auto times = computed(work, blocks, head, tokens, tokens, tile_q);
    RC_ASSERT(std::equal(dense.begin(), dense.end(), times.begin(), times.end()));
  }
}

RC_GTEST_PROP(FlashinferWork, HasEachTileOfEachHeadOnce, ()) {
  const auto tokens = *rc::gen::inRange<std::int64_t>(1, 300);
  const Mask mask = drawn("block_sparse", tokens, 4, 2, 64, 0.3, 1);
  const int ctas = *rc::gen::inRange(1, 20);
  const WorkList work = assign_work(*mask.blocks(), 4, 32, ctas);
  RC_ASSERT(work.work_begin.size() == static_cast<std::size_t>(ctas) + 1);
  RC_ASSERT(work.work_begin.front() == 0);
  RC_ASSERT(std::ranges::is_sorted(work.work_begin));
  RC_ASSERT(work.work_begin.back() == static_cast<std::int32_t>(work.tile.size()));
  std::set<std::pair<int, int>> starts;  // head, first query
  for (std::size_t i = 0; i < work.tile.size(); ++i) {
    RC_ASSERT(starts.emplace(work.head[i], work.q_begin[i] + 32 * work.tile[i]).second);
    RC_ASSERT(32 * work.tile[i] < work.q_size[i]);
  }
  std::size_t tiles = 0;
  for (std::int64_t begin = 0; begin < tokens; begin += 64) {
    tiles += static_cast<std::size_t>((std::min<std::int64_t>(64, tokens - begin) + 31) / 32);
  }
  RC_ASSERT(starts.size() == 4 * tiles);
}

TEST(FlashinferPages, AreTheBlocksWhereThoseAreEqual) {
  const Mask mask = drawn("block_sparse", 1000, 2, 2, 64, 0.5, 3);
  EXPECT_EQ(page_size(*mask.blocks()), 64);
  EXPECT_EQ(page_entries(*mask.blocks()), 2 * 16 * 8);
  EXPECT_EQ(page_size(*drawn("block_sparse_variable", 1000, 2, 2, 64, 0.5, 3).blocks()), 1);
}

TEST(FlashinferPages, CountTheKeysOfAShortLastBlock) {
  BlockLists blocks{{0, 4, 6}, {0, 4, 6}, 1, {0, 2, 3}, {0, 1, 1}};
  EXPECT_EQ(page_rows(blocks), (std::vector<PageRow>{{0, 6}, {2, 2}}));
  blocks.k_bounds = {0, 2, 6};  // the last one is the longer: keys are pages
  EXPECT_EQ(page_rows(blocks), (std::vector<PageRow>{{0, 6}, {6, 4}}));
}

TEST(FlashinferPages, OfARowWithoutBlocks) {
  const BlockLists blocks{{0, 4, 6}, {0, 4, 6}, 1, {0, 0, 1}, {0}};
  EXPECT_EQ(page_rows(blocks), (std::vector<PageRow>{{0, 0}, {0, 4}}));
  const WorkList work = assign_work(blocks, 1, 128, 1);
  EXPECT_EQ(work.keys, (std::vector<std::int32_t>{4, 0}));  // the row's output is still written
}

TEST(FlashinferForm, TakesWholeBlocksOnly) {
  Problem problem;
  problem.tokens_q = problem.tokens_k = 256;
  problem.heads_q = problem.heads_k = 2;
  problem.dtype = DType::bfloat16;
  problem.device = DeviceKind::cuda;
  const Mask whole = drawn("block_sparse", 256, 2, 2, 64, 0.5, 1);
  EXPECT_TRUE(flashinfer_can_express(problem, whole).ok());
  const Mask cut =
      Mask::from_blocks(256, 256, {{0, 256, 0, 256, MaskSliceType::causal}}, *whole.blocks());
  const Support support = flashinfer_can_express(problem, cut);
  EXPECT_EQ(support.code, StatusCode::unsupported);
  EXPECT_NE(support.reason.find("causal"), std::string::npos);
  problem.backward = true;
  EXPECT_EQ(flashinfer_can_express(problem, whole).reason, "flashinfer has no backward pass");
}

}  // namespace
}  // namespace longca::flashinfer
