#include "advise/work.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "attention/api/registry.h"
#include "core/error.h"
#include "mask/generators.h"
#include "mask/own_lengths.h"
#include "planted.h"
#include "support/temp_directory.h"

namespace longca::advise {
namespace {

using testing::case_of;

TEST(MaskFacts, CountsFullAndPartialTilesOverAllQueryHeads) {
  MaskFacts masks;
  const Work work = masks.work(case_of("slice", "causal", 512));
  EXPECT_EQ(work.tiles.full, 64 * 6);
  EXPECT_EQ(work.tiles.partial, 64 * 4);
  EXPECT_EQ(work.slice_tiles.full, 64 * 6) << "one slice, which begins where the matrix does";
  EXPECT_EQ(work.slice_tiles.partial, 64 * 4);
  EXPECT_EQ(work.square_tiles, 64 * 16);
  EXPECT_EQ(work.rows, 64 * 512);
  EXPECT_EQ(work.keys, 8 * 512);
  EXPECT_EQ(work.cells, 64.0 * 512 * 513 / 2);
  EXPECT_NEAR(work.density(), 513.0 / 1024, 1e-12);
  EXPECT_NEAR(work.partial_share(), 0.4, 1e-12);
}

TEST(MaskFacts, OfBlockSparseMasksTheHeadsThatDifferAreScaled) {
  Case c = case_of("slice", "block_sparse", 2048);
  c.density = 0.5;
  c.block = 128;
  c.block_heads = "kv";
  MaskFacts masks;
  const Work work = masks.work(c);
  EXPECT_EQ(work.tiles.full, 64 * 16 * 8) << "8 of 16 key blocks for each of 16 query blocks";
  EXPECT_EQ(work.tiles.partial, 0);
}

Case documents_of(const std::string& mask, std::int64_t tokens, const std::string& lengths) {
  Case c = case_of("slice", mask, tokens);
  c.lengths = lengths;
  return c;
}

/// A kernel for packed sequences begins a tile where a document begins.
TEST(MaskFacts, CountsTilesOfEachDocumentToo) {
  for (const char* mask : {"document", "causal_document"}) {
    const Case c = documents_of(mask, 8192, "prolong64k");
    const GeneratedMask made = generate_mask(c.mask_spec());
    double full = 0, partial = 0;
    for (const MaskSlice& slice : made.mask.slices()) {
      const std::int64_t length = slice.q_end - slice.q_begin;
      ASSERT_EQ(slice.k_end - slice.k_begin, length);
      const std::int64_t rows = (length + kWorkTile - 1) / kWorkTile;
      const auto tiles = static_cast<double>(rows);
      const bool causal = slice.type == MaskSliceType::causal;
      full += causal ? tiles * (tiles - 1) / 2 : tiles * tiles;
      partial += causal ? tiles : 0;
    }
    MaskFacts masks;
    EXPECT_EQ(masks.work(c).slice_tiles.full + masks.work(c).slice_tiles.partial,
              64 * (full + partial));
    EXPECT_NEAR(masks.work(c).slice_tiles.full, 64 * full, 64.0 * 16)
        << "the last tile of a causal document may be cut to a full one";
  }
}

/// 2 × 8 tile rows of 64 heads in waves of 100 SMs, say: the law of each way to divide the work.
TEST(MaskFacts, CountsWhatIsIdleWhileTheLastItemsEnd) {
  MaskFacts masks(100);
  const IdleSlots full = masks.work(case_of("slice", "full", 1024)).idle;
  EXPECT_EQ(full.tile_rows, 8 * (6 * 100 - 64 * 8)) << "512 rows of 8 tiles in 6 waves";
  EXPECT_EQ(full.tile_columns, full.tile_rows);
  EXPECT_EQ(full.grouped_columns, 8 * 8 * (100 - 8 * 8)) << "64 columns of 8 tiles of 8 heads";
  EXPECT_EQ(full.slices, 64 * (100 - 64)) << "64 slices of 64 tiles";
  Case multi_head = case_of("slice", "full", 1024);
  multi_head.heads_k = 64;
  EXPECT_EQ(masks.work(multi_head).idle.grouped_columns, full.tile_columns);
  EXPECT_EQ(masks.work(case_of("slice", "full", 32768)).idle.tile_rows,
            256 * (164 * 100 - 256 * 64))
      << "of many waves the last is as long";
  EXPECT_EQ(MaskFacts().work(case_of("slice", "full", 1024)).idle.tile_rows, 0) << "one works on";
}

/// Slices of millions of tiles, whose sizes have no common part: they are cut into a million.
TEST(MaskFacts, CountsWhatIsIdleBesideLongDocumentsInParts) {
  const longca::testing::TempDirectory folder;
  longca::testing::write_file(folder / "long.txt",
                              fmt::format("{} {}", 2500 * kWorkTile, 2501 * kWorkTile));
  Case c = documents_of("document", 5001 * kWorkTile, add_own_lengths(folder / "long.txt"));
  c.heads_q = c.heads_k = 1;
  const double shorter = 2500.0 * 2500, longer = 2501.0 * 2501;
  const double part = longer / (1 << 20);
  EXPECT_NEAR(MaskFacts(2).work(c).idle.slices, longer - shorter, 2 * part);
  EXPECT_NEAR(MaskFacts(3).work(c).idle.slices, 2 * longer - shorter, 3 * part);
}

TEST(MaskFacts, TheWorkOfAKernelThatSkipsNothingIsThatOfTheWholeMatrix) {
  MaskFacts masks;
  const Work all = masks.work(case_of("slice", "causal", 512)).of_all_tiles();
  EXPECT_EQ(all.tiles.full, 64 * 16);
  EXPECT_EQ(all.tiles.partial, 0);
  EXPECT_EQ(all.density(), 1);
}

TEST(MaskFacts, SaysTheFormOfAMask) {
  MaskFacts masks;
  const auto form = [&](const char* mask, std::int64_t tokens) {
    Case c = case_of("slice", mask, tokens);
    if (c.window) c.window = 1024;
    return masks.form(c);
  };
  EXPECT_EQ(form("full", 4096), MaskForm::full);
  EXPECT_EQ(form("causal", 4096), MaskForm::causal);
  EXPECT_EQ(form("sliding_window", 4096), MaskForm::window);
  EXPECT_EQ(form("sliding_window_causal", 4096), MaskForm::causal_window);
  EXPECT_EQ(form("sliding_window", 1024), MaskForm::full) << "the window reaches everywhere";
  EXPECT_EQ(form("sliding_window_causal", 1024), MaskForm::causal);
  EXPECT_EQ(form("block_causal_document", 1024), MaskForm::full) << "a single block";
  EXPECT_EQ(form("causal_document", 65536), MaskForm::documents);
  EXPECT_EQ(form("global_sliding_window", 4096), MaskForm::other);
  EXPECT_EQ(form("block_sparse", 4096), MaskForm::blocks);
}

TEST(MaskFacts, CountsTheIntervalsThatNoArgumentSays) {
  MaskFacts masks;
  const auto work = [&](const char* mask) { return masks.work(case_of("slice", mask, 16384)); };
  EXPECT_EQ(work("shared_question").key_intervals, 2) << "the question and an answer";
  EXPECT_EQ(work("prefix_lm_document").key_intervals, 1);
  for (const char* mask : {"shared_question", "prefix_lm_document"}) {
    EXPECT_GT(work(mask).tested_tiles, 0);
    EXPECT_EQ(work(mask).tested_tiles, work(mask).tiles.partial);
  }
  EXPECT_EQ(work("causal_document").tested_tiles, 0);
  EXPECT_EQ(work("shared_question").of_all_tiles().tested_tiles, 0);
}

TEST(MaskFacts, SaysWhyAKernelCannotDoAProblem) {
  MaskFacts masks;
  const Kernel& sdpa = KernelRegistry::global().find("sdpa", DeviceKind::cuda);
  EXPECT_EQ(masks.refusal(sdpa, case_of("sdpa", "causal", 1024)), "");
  EXPECT_NE(masks.refusal(sdpa, case_of("sdpa", "document", 1024)), "");
  Case unknown = case_of("sdpa", "causal", 1024);
  unknown.mask = "absent";
  EXPECT_THROW(masks.work(unknown), InputError);
}

TEST(MaskFacts, ThoseMadeSideBySideAreThoseMadeOneByOne) {
  std::vector<Case> cases;
  for (const char* kernel : {"slice", "cudnn"}) {
    for (const char* mask : {"full", "causal", "causal_document", "shared_question"}) {
      for (const std::int64_t tokens : {1000, 8192}) {
        for (const Pass pass : {Pass::forward, Pass::backward}) {
          Case c = documents_of(mask, tokens, "prolong64k");
          c.kernel = kernel;
          c.device = "cuda";
          c.pass = pass;
          cases.push_back(c);
        }
      }
    }
  }
  Case unknown = case_of("slice", "causal", 1024);
  unknown.mask = "absent";
  cases.push_back(unknown);
  std::vector<const Case*> all;
  for (const Case& c : cases) all.push_back(&c);
  MaskFacts together(132);
  together.prepare(all);
  together.prepare(all);
  cases.pop_back();
  MaskFacts alone(132);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.key());
    EXPECT_EQ(together.planned(c).ms, alone.planned(c).ms);
    EXPECT_EQ(together.planned(c).bytes, alone.planned(c).bytes);
    const Work& a = together.work(c);
    const Work& b = alone.work(c);
    EXPECT_EQ(a.cells, b.cells);
    EXPECT_EQ(a.tiles.partial, b.tiles.partial);
    EXPECT_EQ(a.idle.longest_rows, b.idle.longest_rows);
    EXPECT_EQ(a.idle.group_gradients, b.idle.group_gradients);
    EXPECT_EQ(a.idle.slices, b.idle.slices);
  }
  EXPECT_THROW(together.work(unknown), InputError);
}

TEST(MaskFacts, KnowTheListsOfSliceAlone) {
  Case c = case_of("slice", "causal", 8192);
  c.device = "cuda";
  MaskFacts masks(132);
  const double forward = masks.planned(c).ms;
  EXPECT_GT(forward, 1) << "1.1e12 FLOP at less than 1e15 a second";
  EXPECT_LT(forward, 2);
  c.pass = Pass::backward;
  const double backward = masks.planned(c).ms;
  EXPECT_GT(backward, 2 * forward);
  const double sums = masks.planned(c).bytes;
  EXPECT_GT(sums, 0) << "8 KV heads: their long key tiles are split among SMs";
  EXPECT_LE(sums, 8192.0 * 8 * 128 * 2 * 4) << "float32 dK and dV";
  c.pass = Pass::step;
  EXPECT_DOUBLE_EQ(masks.planned(c).ms, forward + backward);
  Case blocks = case_of("slice", "block_sparse", 8192);
  blocks.block = 128;
  blocks.device = "cuda";
  EXPECT_EQ(masks.planned(blocks).ms, 0);
  c.kernel = "cudnn";
  EXPECT_EQ(masks.planned(c).ms, 0);
}

}  // namespace
}  // namespace longca::advise
