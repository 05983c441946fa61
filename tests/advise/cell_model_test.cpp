#include "advise/cell_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "advise/kernel_work.h"
#include "attention/api/registry.h"
#include "planted.h"

namespace longca::advise {
namespace {

using testing::case_of;
using testing::law_ms;

constexpr std::int64_t kLengths[] = {1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384};
const std::vector<std::string> kMasks = {"full", "causal", "sliding_window_causal",
                                         "causal_document", "prefix_lm_causal"};

/// Cells by a law with a noise of that standard deviation, without the length `left_out`.
std::vector<ModelCell> cells_with(double noise, std::int64_t left_out, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> factor(0, noise);
  MaskFacts masks;
  std::vector<ModelCell> cells;
  for (const std::string& mask : kMasks) {
    for (const std::int64_t tokens : kLengths) {
      const Case c = case_of("slice", mask, tokens);
      const double value = law_ms(c, 4e-5, 6e-5) * std::exp(factor(random));
      if (tokens != left_out) cells.push_back({c, masks.work(c), value});
    }
  }
  return cells;
}

TEST(CellModel, FollowsALawBetweenLengthsAndToOtherMasks) {
  MaskFacts masks;
  const CellModel model(cells_with(0, 4096));
  const Case between = case_of("slice", "causal", 4096);
  const auto found = model.predict(between, masks.work(between));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->situation, Situation::between_lengths);
  EXPECT_NEAR(found->value / law_ms(between, 4e-5, 6e-5), 1, 0.01);
  const Case other = case_of("slice", "document", 4096);
  const auto unseen = model.predict(other, masks.work(other));
  ASSERT_TRUE(unseen);
  EXPECT_EQ(unseen->situation, Situation::other_mask);
  EXPECT_NEAR(unseen->value / law_ms(other, 4e-5, 6e-5), 1, 0.05);
}

TEST(CellModel, NoIntervalIsNarrowerThanRunsDiffer) {
  MaskFacts masks;
  const CellModel model(cells_with(0, 4096));
  const Case c = case_of("slice", "full", 4096);
  const auto found = model.predict(c, masks.work(c));
  ASSERT_TRUE(found);
  EXPECT_GE(found->high / found->value, 1.0099);
  EXPECT_LE(found->low / found->value, 1 / 1.0099);
}

TEST(CellModel, IntervalsHoldNineOfTenCellsWhateverTheNoise) {
  for (const double noise : {0.03, 0.2}) {
    MaskFacts masks;
    int inside = 0, all = 0;
    for (unsigned seed = 1; seed <= 12; ++seed) {
      const CellModel model(cells_with(noise, 4096, seed));
      std::mt19937 random(1000 + seed);
      std::normal_distribution<double> factor(0, noise);
      for (const std::string& mask : kMasks) {
        const Case c = case_of("slice", mask, 4096);
        const auto found = model.predict(c, masks.work(c));
        ASSERT_TRUE(found);
        const double value = law_ms(c, 4e-5, 6e-5) * std::exp(factor(random));
        inside += value >= found->low && value <= found->high ? 1 : 0;
        ++all;
      }
    }
    EXPECT_GE(inside, all * 8 / 10) << noise;
    EXPECT_LT(inside, all) << "intervals are no wider than they must be: " << noise;
  }
}

/// A card that its power limit slows by a sixth in calls of 32K tokens and more.
TEST(CellModel, LearnsMostFromCellsOfSimilarLength) {
  MaskFacts masks;
  std::vector<ModelCell> cells;
  const auto slowed_ms = [](const Case& c) {
    return law_ms(c, 4e-5, 6e-5) * (c.tokens >= 32768 ? 7.0 / 6 : 1);
  };
  for (const std::string& mask : kMasks) {
    for (std::int64_t tokens = 1024; tokens <= 131072; tokens *= 2) {
      const Case c = case_of("slice", mask, tokens);
      cells.push_back({c, masks.work(c), slowed_ms(c)});
    }
  }
  const CellModel model(cells);
  for (const std::int64_t tokens : {1024, 65536}) {
    const Case other = case_of("slice", "document", tokens);
    const auto found = model.predict(other, masks.work(other));
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->value / slowed_ms(other), 1, 0.05) << tokens;
  }
}

/// A kernel whose own arguments say full, causal, windows and documents, and that cuts the tiles of
/// other masks by a path of half the speed: a mask that was never measured is on one of the two.
TEST(CellModel, KnowsThatMasksOfNoArgumentAreCutByAnotherPath) {
  MaskFacts masks;
  const auto slow_ms = [&](const Case& c) {
    const bool other = masks.form(c) == MaskForm::other;
    return law_ms(c, 4e-5, other ? 12e-5 : 6e-5);
  };
  const std::vector<std::string> all = {"full",
                                        "causal",
                                        "sliding_window_causal",
                                        "document",
                                        "causal_document",
                                        "shared_question",
                                        "causal_blockwise",
                                        "prefix_lm_document"};
  for (const std::string name : {"causal_document", "prefix_lm_document", "shared_question"}) {
    std::vector<ModelCell> cells;
    for (const std::string& mask : all) {
      for (const std::int64_t tokens : kLengths) {
        const Case c = case_of("fa4", mask, tokens);
        if (mask != name) cells.push_back({c, masks.work(c), slow_ms(c)});
      }
    }
    const CellModel model(cells);
    const Case asked = case_of("fa4", name, 8192);
    const auto found = model.predict(asked, masks.work(asked));
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->value / slow_ms(asked), 1, 0.06) << name;
  }
}

Case with_kv_heads(Case c, int heads_k) {
  c.heads_k = heads_k;
  return c;
}

/// Both passes of a kernel whose time is a function of its work, of `known` masks at 64:64 heads
/// and two lengths; and what is estimated for 64:8, relative to the law. `forget` removes from the
/// work what it is told.
template <typename Law, typename Forget>
double error_for_grouped_heads(const Case& asked, const Law& law_ms, const Forget& forget,
                               const std::vector<std::string>& known = kMasks) {
  MaskFacts masks(132);
  const auto work_of = [&](const Case& c) {
    const Kernel& kernel = KernelRegistry::global().find(c.kernel, DeviceKind::cuda);
    return kernel_work(&kernel, c, masks);
  };
  std::vector<ModelCell> cells;
  for (const std::string& mask : known) {
    for (const std::int64_t tokens : {8192, 32768}) {
      const Case c = with_kv_heads(case_of(asked.kernel, mask, tokens, asked.pass), 64);
      cells.push_back({c, forget(work_of(c)), law_ms(work_of(c))});
    }
  }
  const auto found = CellModel(cells).predict(asked, forget(work_of(asked)));
  return found.value().value / law_ms(work_of(asked)) - 1;
}

Work as_it_is(const Work& work) {
  return work;
}

/// The lists are those of the heads that are asked for: what they say holds for them too.
TEST(CellModel, FollowsTheListsOfAKernelToOtherHeads) {
  const auto law_ms = [](const Work& work) { return work.planned_ms + 2e-7 * work.keys; };
  const auto without_lists = [](Work work) {
    work.planned_ms = 0;
    return work;
  };
  const Case asked = case_of("slice", "causal_document", 2048);
  EXPECT_NEAR(error_for_grouped_heads(asked, law_ms, as_it_is), 0, 0.01);
  EXPECT_GT(std::abs(error_for_grouped_heads(asked, law_ms, without_lists)), 0.05);
}

/// CTAs that go over all query heads of a KV head are few, and the longest end late.
TEST(CellModel, KnowsWhatCtasOfWholeGroupsLeaveIdle) {
  const auto law_ms = [](const Work& work) {
    return 0.01 + 1e-4 * (work.tiles.full + work.tiles.partial + work.idle.group_gradients);
  };
  const auto without_idle = [](Work work) {
    work.idle = {};
    return work;
  };
  const Case asked = case_of("flex", "causal", 4096, Pass::backward);
  EXPECT_NEAR(error_for_grouped_heads(asked, law_ms, as_it_is), 0, 0.03);
  EXPECT_LT(error_for_grouped_heads(asked, law_ms, without_idle), -0.1);
}

/// The sums of dK and dV are in the time as they are, although no cell has any.
TEST(CellModel, AddsWhatIsKnownOfATime) {
  const auto law_ms = [](const Work& work) {
    return 0.01 + 1e-5 * work.tiles.full + 2e-5 * work.tiles.partial + work.known_ms;
  };
  const auto without_sums = [](Work work) {
    work.known_ms = 0;
    return work;
  };
  const Case asked = case_of("cudnn", "causal_document", 8192, Pass::backward);
  EXPECT_NEAR(error_for_grouped_heads(asked, law_ms, as_it_is), 0, 0.02);
  EXPECT_LT(error_for_grouped_heads(asked, law_ms, without_sums), -0.05);
}

/// At 8K and 32K tokens some calls run at full clocks and others do not, as their tiles tell.
TEST(CellModel, KnowsWhichCallsMeetThePowerLimit) {
  const auto law_ms = [](const Work& work) {
    return 0.01 + 3e-5 * (1 + 0.25 * work.slowed) * (work.tiles.full + work.tiles.partial);
  };
  const auto without_limit = [](Work work) {
    work.slowed = 0;
    return work;
  };
  const Case asked = case_of("fa3", "document", 32768);
  EXPECT_NEAR(error_for_grouped_heads(asked, law_ms, as_it_is), 0, 0.01);
  EXPECT_GT(std::abs(error_for_grouped_heads(asked, law_ms, without_limit)), 0.1);
}

/// Shorter calls of other heads, whose documents are as unequal.
TEST(CellModel, CountsCtasThatHaveNothingToDo) {
  const auto law_ms = [](const Work& work) {
    return 0.01 + 1e-5 * (work.tiles.full + work.tiles.partial) + 5e-6 * work.empty_tile_rows;
  };
  const auto without_empty = [](Work work) {
    work.empty_tile_rows = 0;
    return work;
  };
  const Case asked = case_of("fa2", "document", 32768);
  EXPECT_NEAR(error_for_grouped_heads(asked, law_ms, as_it_is), 0, 0.02);
  EXPECT_GT(std::abs(error_for_grouped_heads(asked, law_ms, without_empty)), 0.05);
}

/// No mask that is known needs two tests of a cell.
TEST(CellModel, FollowsTheTestsOfCellsToMasksThatNeedMore) {
  const auto law_ms = [](const Work& work) {
    return 0.01 + 1e-5 * (work.tiles.full + work.tiles.partial + 2 * work.tested_tiles);
  };
  const auto with_one_test = [](Work work) {
    work.tested_tiles = std::min(work.tested_tiles, work.tiles.partial);
    return work;
  };
  const std::vector<std::string> known = {"full", "causal", "causal_document", "causal_blockwise",
                                          "prefix_lm_document"};
  const Case asked = case_of("fa4", "shared_question", 32768);
  EXPECT_NEAR(error_for_grouped_heads(asked, law_ms, as_it_is, known), 0, 0.03);
  EXPECT_LT(error_for_grouped_heads(asked, law_ms, with_one_test, known), -0.2);
}

/// Calls of up to 3K tokens that differ by 10 %, and longer ones that do not.
TEST(CellModel, IsAsWideAsCellsOfThatLengthAreOff) {
  std::mt19937 random(3);
  std::normal_distribution<double> factor(0, 0.1);
  MaskFacts masks;
  std::vector<ModelCell> cells;
  for (const std::string& mask : kMasks) {
    for (std::int64_t tokens = 1024; tokens <= 65536; tokens += tokens / 2) {
      const Case c = case_of("slice", mask, tokens);
      const double noise = tokens <= 3072 ? std::exp(factor(random)) : 1;
      cells.push_back({c, masks.work(c), law_ms(c, 4e-5, 6e-5) * noise});
    }
  }
  const CellModel model(cells);
  const auto width = [&](std::int64_t tokens) {
    const Case c = case_of("slice", "causal", tokens);
    const auto found = model.predict(c, masks.work(c)).value();
    return found.high / found.low - 1;
  };
  EXPECT_GT(width(2000), 2 * width(30000));
}

TEST(CellModel, PeaksOfMemoryAreTheTensorsAndWhatGrowsWithRowsWhateverTheHeads) {
  MaskFacts masks;
  std::vector<ModelCell> cells;
  const auto work_of = [&](const Case& c) {
    Work work = masks.work(c);
    work.known_bytes = 256.0 * (2 * work.rows + 2 * work.keys);
    return work;
  };
  const auto peak = [&](const Case& c) {
    const Work work = work_of(c);
    return 1e6 + work.known_bytes + 512 * work.rows;
  };
  for (const std::int64_t tokens : kLengths) {
    for (const std::string& mask : kMasks) {
      const Case c = case_of("slice", mask, tokens);
      cells.push_back({c, work_of(c), peak(c)});
    }
  }
  const CellModel model(cells, Quantity::memory);
  Case other = case_of("slice", "causal", 8192);
  other.heads_k = 64;
  const auto found = model.predict(other, work_of(other));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->value / peak(other), 1, 0.01);
}

/// What grows slowly looks like a constant at long lengths, and is none.
TEST(CellModel, ConstantIsWhatAnEmptyCallTakes) {
  MaskFacts masks;
  const auto time_ms = [&](const Case& c) {
    const Work& work = masks.work(c);
    return 0.02 * std::sqrt(static_cast<double>(c.tokens) / 1024) +
           1e-5 * (work.tiles.full + work.tiles.partial);
  };
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 0.01);
  std::vector<ModelCell> cells;
  for (const std::string& mask : kMasks) {
    for (const std::int64_t tokens : kLengths) {
      const Case c = case_of("cudnn", mask, tokens);
      if (tokens > 1024) cells.push_back({c, masks.work(c), time_ms(c) * std::exp(noise(random))});
    }
  }
  const CellModel model(cells);
  for (const std::string& mask : kMasks) {
    const Case shorter = case_of("cudnn", mask, 1024);
    const auto found = model.predict(shorter, masks.work(shorter));
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->value / time_ms(shorter), 1, 0.06) << mask;
  }
}

TEST(CellModel, SaysNothingFromTooFewCells) {
  auto cells = cells_with(0, 4096);
  cells.resize(CellModel::kMinCells - 1);
  MaskFacts masks;
  const Case c = case_of("slice", "causal", 4096);
  EXPECT_FALSE(CellModel(cells).predict(c, masks.work(c)));
}

TEST(CellModel, IsWiderTheFurtherTheCellIsFromWhatWasMeasured) {
  MaskFacts masks;
  const CellModel model(cells_with(0.05, 4096));
  const auto width = [&](const Case& c) {
    const auto found = model.predict(c, masks.work(c)).value();
    return found.high / found.low;
  };
  const double between = width(case_of("slice", "causal", 4096));
  EXPECT_LT(between, width(case_of("slice", "causal", 131072)));
  Case heads = case_of("slice", "causal", 4096);
  heads.heads_k = 64;
  EXPECT_LE(between, width(heads));
}

}  // namespace
}  // namespace longca::advise
