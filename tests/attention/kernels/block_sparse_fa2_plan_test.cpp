#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attention/kernels/block_sparse_fa2/block_form.h"
#include "attention/kernels/block_sparse_fa2/fa2_sparse_native.h"
#include "attention/kernels/block_sparse_fa2/work_order.h"
#include "mask/block_draw.h"
#include "mask/block_lists.h"
#include "mask/generators.h"
#include "mask/oracle.h"

namespace longca::fa2_sparse {
namespace {

using oracle::Dense;

/// No slices, one that is a band, or random ones that seldom are.
std::vector<MaskSlice> random_band(std::int64_t q, std::int64_t k) {
  const int kind = *rc::gen::inRange(0, 5);
  if (kind == 0) return {};
  if (kind == 1)
    return oracle::random_mask().mask.q_tokens() > 20
               ? std::vector<MaskSlice>{{0, q / 2, 0, k / 2, MaskSliceType::full}}
               : std::vector<MaskSlice>{};
  return {{0, q, 0, k,
           *rc::gen::element(MaskSliceType::full, MaskSliceType::causal,
                             MaskSliceType::inverse_causal, MaskSliceType::bi_causal)}};
}

/// Uniform blocks of some tens to hundreds of tokens.
Mask random_mask(std::int64_t q, std::int64_t k) {
  const auto block_q = *rc::gen::element<std::int64_t>(64, 128, 192, 256);
  const auto block_k = *rc::gen::element<std::int64_t>(64, 128, 192, 256);
  const auto lists = *rc::gen::inRange(1, 4);
  const double density = *rc::gen::element(0.1, 0.5, 1.0);
  return Mask::from_blocks(
      q, k, random_band(q, k),
      draw_blocks({uniform_bounds(q, block_q), uniform_bounds(k, block_k), lists, density},
                  *rc::gen::arbitrary<std::uint64_t>()));
}

RC_GTEST_PROP(Fa2SparseForm, SaysOfEveryCellWhatTheMaskSays, ()) {
  const auto q_tokens = *rc::gen::inRange<std::int64_t>(0, 200);
  const auto k_tokens = *rc::gen::inRange<std::int64_t>(0, 200);
  const Mask mask = random_mask(q_tokens, k_tokens);
  BlockForm form;
  RC_PRE(block_form(mask, form).ok());
  const BlockLists& lists = *mask.blocks();
  const std::vector<std::uint32_t> bits = block_bits(lists);
  const std::int64_t words = words_per_row(lists.k_blocks());
  for (int list = 0; list < lists.heads; ++list) {
    const Dense dense = oracle::dense_of(mask, list);
    for (std::int64_t q = 0; q < q_tokens; ++q) {
      const std::int64_t row = (list * lists.q_blocks() + q / form.q_block) * words;
      for (std::int64_t k = 0; k < k_tokens; ++k) {
        const std::int64_t block = k / form.k_block;
        const bool kept =
            (bits.at(static_cast<std::size_t>(row + block / 32)) >> block % 32 & 1) != 0;
        const bool seen =
            form.band.allows(static_cast<std::int32_t>(q), static_cast<std::int32_t>(k));
        RC_ASSERT((kept && seen) == (dense.at(q, k) != 0));
      }
    }
  }
}

RC_GTEST_PROP(Fa2SparseBand, ClassifiesTilesAsTheirCellsSay, ()) {
  const auto q_tokens = *rc::gen::inRange<std::int32_t>(1, 40);
  const auto k_tokens = *rc::gen::inRange<std::int32_t>(1, 40);
  const auto low = *rc::gen::inRange<std::int32_t>(-q_tokens, k_tokens + 1);
  const auto high = *rc::gen::inRange<std::int32_t>(low + 1, k_tokens + 2);
  const Band band{low, high, q_tokens, k_tokens};
  const auto tile_m = *rc::gen::inRange<std::int32_t>(1, 12);
  const auto tile_n = *rc::gen::inRange<std::int32_t>(1, 12);
  for (std::int32_t row = 0; row < q_tokens; row += tile_m) {
    const Tokens rows{row, std::min(row + tile_m, q_tokens)};
    for (std::int32_t key = 0; key < k_tokens; key += tile_n) {
      const Tokens keys{key, key + tile_n};  // cells beyond the last key are not allowed
      int allowed = 0;
      for (std::int32_t q = rows.begin; q < rows.end; ++q) {
        for (std::int32_t k = keys.begin; k < keys.end; ++k) {
          allowed += band.allows(q, k);
          if (!band.allows(q, k)) continue;
          RC_ASSERT(band.keys_of(rows).begin <= k && k < band.keys_of(rows).end);
          RC_ASSERT(band.rows_of({key, std::min(key + tile_n, k_tokens)}).begin <= q);
          RC_ASSERT(q < band.rows_of({key, std::min(key + tile_n, k_tokens)}).end);
        }
      }
      RC_ASSERT(band.empty(rows, keys) == (allowed == 0));
      RC_ASSERT(band.partial(rows, keys) == (allowed < (rows.end - rows.begin) * tile_n));
    }
  }
}

Support can_express(const Mask& mask) {
  Problem problem;
  problem.tokens_q = mask.q_tokens();
  problem.tokens_k = mask.k_tokens();
  problem.dtype = DType::bfloat16;
  problem.device = DeviceKind::cuda;
  return fa2_sparse_native_can_express(problem, mask);
}

Mask blocks_of(const std::string& name, std::int64_t tokens, std::int64_t block) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = tokens;
  spec.block = block;
  return generate_mask(spec).mask;
}

TEST(Fa2SparseCanExpress, UniformBlocksOfMultiplesOf64) {
  for (const std::int64_t tokens : {1, 100, 128, 1000, 8192}) {
    for (const std::int64_t block : {64, 128, 192, 256, 1024}) {
      EXPECT_EQ(can_express(blocks_of("block_sparse", tokens, block)).reason, "")
          << tokens << " in blocks of " << block;
    }
  }
  // One block is one block, whatever its length.
  EXPECT_EQ(can_express(blocks_of("block_sparse", 50, 96)).reason, "");
}

TEST(Fa2SparseCanExpress, NothingElseInItsOwnWords) {
  const auto refused = [](const Mask& mask, const std::string& words) {
    const Support support = can_express(mask);
    EXPECT_EQ(support.code, StatusCode::unsupported);
    EXPECT_NE(support.reason.find(words), std::string::npos) << support.reason;
  };
  refused(blocks_of("block_sparse", 1000, 96), "multiples of 64 tokens, not of 96");
  refused(blocks_of("block_sparse", 1000, 32), "multiples of 64 tokens, not of 32");
  refused(blocks_of("block_sparse_variable", 1000, 128), "blocks of one length");
  refused(blocks_of("causal", 1000, 128), "takes block-sparse masks only");
  const auto bounds = uniform_bounds(512, 128);
  refused(Mask::from_blocks(
              512, 512,
              {{0, 200, 0, 200, MaskSliceType::full}, {200, 512, 200, 512, MaskSliceType::full}},
              draw_blocks({bounds, bounds, 1, 0.5}, 1)),
          "one band of diagonals");
}

TEST(Fa2SparseForm, BlocksOfOnlyOneShorterLengthAtTheEnd) {
  BlockForm form;
  const auto of = [&](std::vector<std::int64_t> bounds) {
    const std::int64_t tokens = bounds.back();
    return block_form(Mask::from_blocks(tokens, tokens, {}, draw_blocks({bounds, bounds, 1, 1}, 1)),
                      form)
        .ok();
  };
  EXPECT_TRUE(of({0, 64, 128, 129}));
  EXPECT_EQ(form.q_block, 64);
  EXPECT_FALSE(of({0, 64, 128, 256}));
  EXPECT_FALSE(of({0, 64, 127, 191}));
  EXPECT_TRUE(of({0, 200}));
  EXPECT_EQ(form.k_block, 256);
}

RC_GTEST_PROP(Fa2SparseOrder, HoldsEveryCtaOnceLongestFirstInSections, ()) {
  Work work;
  work.lists = *rc::gen::inRange(1, 5);
  work.units = work.lists * *rc::gen::inRange(1, 4);
  work.tiles = *rc::gen::inRange(0, 9);
  work.section_units = *rc::gen::inRange(1, work.units + 1);
  const auto counts = *rc::gen::container<std::vector<std::int32_t>>(
      static_cast<std::size_t>(work.lists * work.tiles), rc::gen::inRange(0, 6));
  std::vector<std::int32_t> order = work_order(work, counts);
  RC_ASSERT(std::ssize(order) == work.units * work.tiles);
  const auto section = [&](std::int32_t item) { return item / work.tiles / work.section_units; };
  const auto count = [&](std::int32_t item) {
    const int list = item / work.tiles * work.lists / work.units;
    return counts.at(static_cast<std::size_t>(list * work.tiles + item % work.tiles));
  };
  for (std::size_t i = 1; i < order.size(); ++i) {
    RC_ASSERT(section(order[i - 1]) <= section(order[i]));
    if (section(order[i - 1]) == section(order[i]))
      RC_ASSERT(count(order[i - 1]) >= count(order[i]));
  }
  std::ranges::sort(order);
  for (std::size_t i = 0; i < order.size(); ++i) RC_ASSERT(order[i] == static_cast<int>(i));
}

TEST(Fa2SparseOrder, TheMakespanIsThatOfTheScheduleByHand) {
  const Work work{.units = 2, .lists = 1, .tiles = 2, .section_units = 2};
  const std::vector<std::int32_t> counts = {3, 1};
  const std::vector<std::int32_t> order = work_order(work, counts);
  EXPECT_EQ(order, (std::vector<std::int32_t>{0, 2, 1, 3}));
  // Two concurrent CTAs, two tiles per block and two of overhead per CTA: 8 + 4 on each.
  EXPECT_EQ(makespan(work, counts, order, 2, 2), 12);
  EXPECT_EQ(makespan(work, counts, order, 2, 1), 24);
  cost::Platform slow = cost::default_platform();
  slow.mma.backward.cta_overhead_tiles = 5;
  EXPECT_EQ(makespan(work, counts, order, 2, 1, slow), 36);
}

TEST(Fa2SparseHeadParts, SplitAGroupAsFarAsTheScheduleGains) {
  BackwardWork work{.group_size = 8,
                    .heads_k = 8,
                    .lists = 8,
                    .tiles = 64,
                    .tiles_per_block = 2,
                    .heads_in_cache = 64,
                    .concurrent_ctas = 132};
  // 8K tokens, every key block kept by as many: two parts fill the SMs as well as
  // eight.
  EXPECT_EQ(head_parts(work, std::vector<std::int32_t>(512, 32)), 2);
  // One that all keep is as long as all others on one SM.
  std::vector<std::int32_t> one_long(512, 1);
  for (std::size_t list = 0; list < 8; ++list) one_long[list * 64] = 64;
  EXPECT_EQ(head_parts(work, one_long), 8);
  // So many CTAs that any split is balanced.
  work.tiles = 4096;
  EXPECT_EQ(head_parts(work, std::vector<std::int32_t>(8 * 4096, 32)), 2);
  work.group_size = 1;
  EXPECT_EQ(head_parts(work, std::vector<std::int32_t>(8 * 4096, 32)), 1);
  work.group_size = 3;
  EXPECT_EQ(head_parts(work, std::vector<std::int32_t>(8 * 4096, 32)), 3);
}

}  // namespace
}  // namespace longca::fa2_sparse
