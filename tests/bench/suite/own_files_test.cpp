#include "bench/suite/own_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/expect_input_error.h"
#include "bench/suite/axes.h"
#include "bench/suite/cases.h"
#include "mask/own_lengths.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

TEST(OwnFiles, AValueOfLengthsIsAFileIfItIsNoName) {
  const TempDirectory folder;
  write_file(folder / "d.txt", "30 34");
  const Axis& axis = find_axis("lengths");
  const auto values = axis.parse("pile," + (folder / "d.txt").string());
  ASSERT_EQ(values.size(), 2U);
  EXPECT_EQ(values[0], "pile");
  EXPECT_TRUE(values[1].starts_with("d.txt-")) << values[1];
  EXPECT_EQ(axis.parse(values[1]), std::vector{values[1]}) << "a canonical value is its own";
  expect_input_error([&] { axis.parse("pille"); }, "(did you mean 'pile'?)");
  expect_input_error([&] { axis.parse("./pille"); }, "cannot read ./pille");
}

TEST(OwnFiles, AFileWithCommasInItsNameIsNamedAlone) {
  const TempDirectory folder;
  write_file(folder / "a,b.txt", "30 34");
  write_file(folder / "m,n.json", R"({"tokens":4,"slices":[]})");
  const auto lengths = find_axis("lengths").parse((folder / "a,b.txt").string());
  ASSERT_EQ(lengths.size(), 1U);
  EXPECT_TRUE(lengths[0].starts_with("a_b.txt-")) << lengths[0];
  const auto mask = find_axis("mask").parse((folder / "m,n.json").string());
  ASSERT_EQ(mask.size(), 1U);
  EXPECT_TRUE(mask[0].starts_with("m_n.json-")) << mask[0];
  expect_input_error([&] { find_axis("lengths").parse("pile," + (folder / "a,b.txt").string()); },
                     "cannot read " + (folder / "a").string());
}

/// A case with the documents of a file.
Case case_of(const std::filesystem::path& file) {
  Case c;
  c.mask = "document";
  c.lengths = add_own_lengths(file);
  return c;
}

TEST(OwnFiles, GoWithACaseByTheirPath) {
  const TempDirectory folder;
  write_file(folder / "d.txt", "30 34");
  const Case c = case_of(folder / "d.txt");
  EXPECT_THAT(c.key(), HasSubstr(" lengths=d.txt-"));
  const OwnFiles files = own_files(c);
  EXPECT_EQ(nlohmann::json(files).get<OwnFiles>().lengths, folder / "d.txt");
  EXPECT_TRUE(read_own_files(files, c).ok());
  EXPECT_FALSE(own_files(Case{}).lengths);
  EXPECT_TRUE(read_own_files({}, Case{}).ok());
}

TEST(OwnFiles, OfOtherContentsAreUnavailable) {
  const TempDirectory folder;
  write_file(folder / "d.txt", "30 34");
  Case c = case_of(folder / "d.txt");
  const OwnFiles files = own_files(c);
  c.lengths = "d.txt-0123456789abcdef";  // as a process sees it that has not read the file before
  const Status changed = read_own_files(files, c);
  EXPECT_EQ(changed.code, StatusCode::unavailable);
  EXPECT_EQ(changed.reason, (folder / "d.txt").string() + " has changed since the run began");
  std::filesystem::remove(folder / "d.txt");
  const Status gone = read_own_files(files, c);
  EXPECT_EQ(gone.code, StatusCode::unavailable);
  EXPECT_THAT(gone.reason, HasSubstr("d.txt: No such file"));
}

TEST(OwnFiles, TooFewDocumentsAreRefusedBeforeARun) {
  const TempDirectory folder;
  write_file(folder / "d.txt", "30 34");
  Suite suite;
  suite.axes = {{"kernel", {"naive"}},
                {"mask", {"causal", "document"}},
                {"tokens", {"64"}},
                {"lengths", find_axis("lengths").parse((folder / "d.txt").string())}};
  EXPECT_EQ(expand(suite).cases.size(), 4U);
  suite.axes["tokens"] = {"65"};
  expect_input_error([&] { expand(suite); },
                     "the sequence has 65 tokens, and the 2 documents of lengths d.txt have 64");
  suite.axes["mask"] = {"causal"};
  EXPECT_EQ(expand(suite).cases.size(), 2U) << "causal has no documents";
}

TEST(OwnFiles, AMaskBringsItsLengthAndHeads) {
  const TempDirectory folder;
  write_file(folder / "m.json",
             R"({"tokens":4,"blocks":[[[0]],[[0]]],"q_bounds":[0,4],"k_bounds":[0,4]})");
  const auto mask = find_axis("mask").parse("causal," + (folder / "m.json").string());
  Suite suite;
  suite.axes = {{"kernel", {"naive"}}, {"tokens", {"64"}}, {"heads", {"4:4", "4:2"}}};
  suite.name = "s";
  Suite own = suite;
  override_axes(own, {{"mask", mask}});
  const CaseList list = expand(own);
  EXPECT_EQ(list.cases.size(), 2U * 2 + 2) << "causal with both heads, m.json with 4:2";
  for (const Case& c : list.cases) EXPECT_EQ(c.tokens, 4);
  EXPECT_EQ(size_of(own).cells, 6);
  EXPECT_EQ(size_of(own).skipped, (std::map<std::string, std::int64_t>{
                                      {"m.json has 2 block lists: one per KV or query head", 2}}));

  override_axes(suite, {{"mask", mask}, {"tokens", {"4", "5"}}});
  EXPECT_EQ(expand(suite).cases.size(), 3U * 2 + 4);
  EXPECT_EQ(size_of(suite).cells, 10);
}

TEST(OwnFiles, AMaskOfASuiteBringsItsLengthToo) {
  const TempDirectory folder;
  write_file(folder / "m.json", R"({"tokens":4,"slices":[]})");
  const auto mask = find_axis("mask").parse("causal," + (folder / "m.json").string());
  Suite suite;
  suite.axes = {{"kernel", {"naive"}}, {"mask", mask}};
  Suite other = suite;
  override_axes(suite, {{"heads", {"2:1"}}});
  for (const Case& c : expand(suite).cases) EXPECT_EQ(c.tokens, 4) << c.key();
  other.axes["tokens"] = {"4", "8"};
  override_axes(other, {});
  EXPECT_EQ(expand(other).cases.size(), 2U * (2 + 1));
  override_axes(other, {{"mask", {"causal"}}, {"tokens_per_rank", {"16"}}});
  EXPECT_FALSE(other.axes.contains("tokens"));
}

TEST(OwnFiles, AMaskGoesWithItsCase) {
  const TempDirectory folder;
  write_file(folder / "m.json", R"({"tokens":4,"slices":[]})");
  Case c;
  c.kernel = "naive";
  c.mask = find_axis("mask").parse((folder / "m.json").string()).at(0);
  c.tokens = 4;
  const Case read = nlohmann::json(c).get<Case>();
  EXPECT_EQ(read.mask, c.mask);
  EXPECT_EQ(nlohmann::json(own_files(c)).get<OwnFiles>().mask, folder / "m.json");
  c.mask = "m.json-0123456789abcdef";
  EXPECT_THAT(read_own_files({.mask = folder / "m.json"}, c).reason,
              HasSubstr("m.json has changed since the run began"));
}

}  // namespace
}  // namespace longca::testing
