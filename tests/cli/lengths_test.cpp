#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using nlohmann::json;
using Lengths = std::vector<std::int64_t>;

TEST(Lengths, EqualThePublishedExamplesToTheBit) {
  const auto first =
      run_longca({"lengths", "prolong64k", "--tokens", "8192", "--seed", "42", "--json"});
  EXPECT_EQ(first.exit_code, 0);
  EXPECT_EQ(first.out,
            "{\"distribution\":\"prolong64k\",\"tokens\":8192,\"seed\":42,\"lengths\":"
            "[545,719,166,581,482,27,161,474,177,864,778,661,205,2352]}\n");
  EXPECT_EQ(first.err, "");
  const auto second = run_longca({"lengths", "pile", "--tokens", "1024", "--seed", "42", "--json"});
  EXPECT_EQ(json::parse(second.out).at("lengths").get<Lengths>(), (Lengths{353, 559, 102, 10}));
}

TEST(Lengths, SuffixesAndTheDefaultSeedMeanTheSame) {
  const auto spelled =
      run_longca({"lengths", "pile", "--tokens", "65536", "--seed", "42", "--json"});
  const auto suffix = run_longca({"lengths", "pile", "--tokens", "64K", "--json"});
  EXPECT_EQ(spelled.out, suffix.out);
}

TEST(Lengths, FillTheSequenceForEveryDistribution) {
  const auto listed = json::parse(run_longca({"list", "lengths", "--json"}).out);
  ASSERT_EQ(listed.size(), 10U);
  for (const auto& row : listed) {
    const auto name = row.at("name").get<std::string>();
    const auto drawn = json::parse(run_longca({"lengths", name, "--tokens", "100K", "--json"}).out);
    const auto lengths = drawn.at("lengths").get<Lengths>();
    EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}), 102400) << name;
  }
}

TEST(Lengths, WithoutJsonAreBareNumbers) {
  EXPECT_EQ(run_longca({"lengths", "pile", "--tokens", "1024"}).out, "353 559 102 10\n");
}

TEST(Lengths, OfAFileAreItsDocumentsInTheirOrder) {
  const TempDirectory folder;
  write_file(folder / "d.txt", "300, 200\n100\n");
  const std::string file = (folder / "d.txt").string();
  EXPECT_EQ(run_longca({"lengths", file, "--tokens", "550"}).out, "300 200 50\n");
  const auto mask =
      run_longca({"mask", "document", "--tokens", "600", "--lengths", file, "--json"});
  EXPECT_EQ(json::parse(mask.out).at("lengths").get<Lengths>(), (Lengths{300, 200, 100}));
  EXPECT_THAT(
      run_longca({"mask", "document", "--tokens", "600", "--lengths", file}).out,
      ::testing::HasSubstr("documents      3 (d.txt): 300 200 100\narea           140000 "));
  const auto many = run_longca({"lengths", file, "--tokens", "601"});
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_EQ(many.err,
            "longca: the sequence has 601 tokens, and the 3 documents of lengths d.txt have 600\n");
}

}  // namespace
}  // namespace longca::testing
