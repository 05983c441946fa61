#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using nlohmann::json;

const std::vector<std::string> kStaticMasks{
    "full",
    "causal",
    "sliding_window",
    "sliding_window_causal",
    "document",
    "causal_document",
    "shared_question",
    "global_sliding_window",
    "causal_blockwise",
    "prefix_lm_causal",
    "prefix_lm_document",
    "block_causal_document",
};

/// `expects_notes`: of options that the mask does not use.
json mask_json(std::vector<std::string> arguments, bool expects_notes = false) {
  arguments.insert(arguments.begin(), "mask");
  arguments.emplace_back("--json");
  const auto result = run_longca(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  if (!expects_notes) {
    EXPECT_EQ(result.err, "");
  }
  return json::parse(result.out);
}

/// The contract's words about a slice, taken literally.
bool allows(const json& slice, std::int64_t q, std::int64_t k) {
  const auto q_begin = slice.at(0).get<std::int64_t>();
  const auto q_end = slice.at(1).get<std::int64_t>();
  const auto k_begin = slice.at(2).get<std::int64_t>();
  const auto k_end = slice.at(3).get<std::int64_t>();
  const auto type = slice.at(4).get<std::string>();
  if (q < q_begin || q >= q_end || k < k_begin || k >= k_end) return false;
  const bool causal = q_end - q <= k_end - k;
  const bool inverse = k - k_begin >= q - q_begin;
  if (type == "full") return true;
  if (type == "causal") return causal;
  if (type == "inverse_causal") return inverse;
  EXPECT_EQ(type, "bi_causal");
  return causal && inverse;
}

TEST(Mask, AreaIsTheNumberOfCellsThatTheSlicesAllow) {
  constexpr std::int64_t kTokens = 150;
  for (const auto& name : kStaticMasks) {
    const json mask =
        mask_json({name, "--tokens", "150", "--window", "37", "--block-tokens", "16"}, true);
    std::int64_t area = 0;
    for (std::int64_t q = 0; q < kTokens; ++q) {
      for (std::int64_t k = 0; k < kTokens; ++k) {
        int times = 0;
        for (const auto& slice : mask.at("slices")) times += allows(slice, q, k) ? 1 : 0;
        ASSERT_LE(times, 1) << name << " allows (" << q << ", " << k << ") twice";
        area += times;
      }
    }
    EXPECT_TRUE(mask.at("area").is_number_integer()) << name;
    EXPECT_EQ(mask.at("area").get<std::int64_t>(), area) << name;
    EXPECT_DOUBLE_EQ(mask.at("density").get<double>(), static_cast<double>(area) / (150 * 150))
        << name;
  }
}

TEST(Mask, HasTheKeysOfTheContract) {
  for (const auto& name : kStaticMasks) {
    const json mask = mask_json({name, "--tokens", "3000"});
    for (const char* key :
         {"mask", "tokens", "seed", "lengths", "prefix", "window", "slices", "area", "density"}) {
      EXPECT_TRUE(mask.contains(key)) << name << " lacks " << key;
    }
    EXPECT_EQ(mask.at("mask"), name);
    EXPECT_EQ(mask.at("tokens"), 3000);
    EXPECT_EQ(mask.at("seed"), 42);
  }
  EXPECT_EQ(mask_json({"causal", "--tokens", "8"}).at("lengths"), nullptr);
  EXPECT_EQ(mask_json({"sliding_window", "--tokens", "8K"}).at("window"), 1024);
  EXPECT_TRUE(mask_json({"prefix_lm_causal", "--tokens", "8K"}).at("prefix").is_number_integer());
}

TEST(Mask, DocumentsAreThoseOfTheLengthsVerb) {
  const auto lengths =
      json::parse(run_longca({"lengths", "pile", "--tokens", "5000", "--json"}).out);
  const json mask = mask_json({"causal_document", "--tokens", "5000", "--lengths", "pile"});
  EXPECT_EQ(mask.at("lengths"), lengths.at("lengths"));
}

TEST(Mask, BlockSparseListsKeptBlocksPerKvHead) {
  const json mask = mask_json(
      {"block_sparse", "--tokens", "1000", "--heads", "8:2", "--block", "64", "--density", "0.25"});
  EXPECT_FALSE(mask.contains("slices"));
  ASSERT_EQ(mask.at("blocks").size(), 2U);
  EXPECT_EQ(mask.at("q_bounds").size(), 17U);
  EXPECT_EQ(mask.at("k_bounds").back(), 1000);
  for (const auto& head : mask.at("blocks")) {
    ASSERT_EQ(head.size(), 16U);
    for (const auto& kept : head) EXPECT_EQ(kept.size(), 4U);  // round(0.25 · 16)
  }
}

TEST(Mask, BlockSparseAreaIsTheMeanOverHeads) {
  for (const char* name : {"block_sparse", "block_sparse_variable"}) {
    const json mask = mask_json({name, "--tokens", "777", "--heads", "4:4", "--block", "50",
                                 "--density", "0.3", "--block-heads", "query"});
    const auto q = mask.at("q_bounds").get<std::vector<double>>();
    const auto k = mask.at("k_bounds").get<std::vector<double>>();
    double area = 0;
    for (const auto& head : mask.at("blocks")) {
      for (std::size_t i = 0; i < head.size(); ++i) {
        for (const auto& j : head[i]) {
          const auto key = j.get<std::size_t>();
          area += (q[i + 1] - q[i]) * (k[key + 1] - k[key]);
        }
      }
    }
    EXPECT_DOUBLE_EQ(mask.at("area").get<double>(), area / 4) << name;
  }
}

TEST(Mask, WithoutJsonIsReadable) {
  const auto result = run_longca({"mask", "causal_document", "--tokens", "8192"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, ::testing::HasSubstr("14 (prolong64k, seed 42): 545 719 166"));
}

TEST(Mask, DocumentsKeepToTheWidthOfTheTerminal) {
  const auto result = run_longca({"mask", "causal_document", "--tokens", "8192"},
                                 {.environment = {{"COLUMNS", "60"}}});
  EXPECT_THAT(result.out, ::testing::HasSubstr("545 719 166"));
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 64U) << line;
}

TEST(Mask, PlotOfAnUnknownFormatIsRefused) {
  const TempDirectory directory;
  const auto file = directory / "mask.bmp";
  const auto result = run_longca({"mask", "causal", "--tokens", "64", "--plot", file.string()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(Mask, APlotDoesNotReplaceWhatIsDrawn) {
  const TempDirectory folder;
  const std::string mask = R"({"tokens":4,"slices":[[0,4,0,4,"causal"]]})";
  write_file(folder / "m.svg", mask);
  write_file(folder / "d.svg", "2 2");
  const auto expect_refused = [&](std::vector<std::string> words, const std::string& file,
                                  const std::string& reader) {
    words.insert(words.begin(), "mask");
    words.insert(words.end(), {"--plot", folder / file});
    const auto result = run_longca(words);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, ::testing::HasSubstr("--plot would overwrite " +
                                                 (folder / file).string() + ", which " + reader));
  };
  expect_refused({folder / "m.svg"}, "m.svg", "the mask reads");
  expect_refused({"document", "--tokens", "4", "--lengths", folder / "d.svg"}, "d.svg",
                 "--lengths reads");
  EXPECT_EQ(read_file(folder / "m.svg"), mask);
  EXPECT_EQ(read_file(folder / "d.svg"), "2 2");
}

TEST(Mask, NamesADistributionOnlyWhereItIsDrawnFrom) {
  EXPECT_THAT(run_longca({"mask", "document", "--tokens", "1K"}).out,
              ::testing::HasSubstr("(prolong64k, seed 42): "));
  const TempDirectory folder;
  const std::string file = (folder / "m.json").string();
  for (const std::string mask : {"document", "block_causal_document"}) {
    write_file(file, run_longca({"mask", mask, "--tokens", "8K", "--json"}).out);
    EXPECT_THAT(run_longca({"mask", file}).out, ::testing::Not(::testing::HasSubstr("prolong64k")));
  }
  EXPECT_THAT(run_longca({"mask", "block_causal_document", "--tokens", "4K", "--seed", "7"}).out,
              ::testing::HasSubstr("(drawn, seed 7): "));
}

}  // namespace
}  // namespace longca::testing
