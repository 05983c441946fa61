#include "advise/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "mask/own_lengths.h"
#include "planted.h"
#include "support/temp_directory.h"

namespace longca::advise {
namespace {

using ::testing::HasSubstr;

class Documents : public ::testing::Test {
 protected:
  std::filesystem::path file_with(const std::string& text) const {
    std::ofstream(folder_ / "docs.txt") << text;
    return folder_ / "docs.txt";
  }
  void expect_refused(const std::string& text, const std::string& part) const {
    try {
      sample_documents(file_with(text), 10);
      FAIL() << text;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }
  const longca::testing::TempDirectory folder_;
};

TEST_F(Documents, ALineIsASequenceOfLengthsOrOfCuSeqlens) {
  const auto sequences = sample_documents(file_with("512 256,256\n\n0 100 1024\n"), 10);
  ASSERT_EQ(sequences.size(), 2U);
  EXPECT_EQ(sequences[0].tokens, 1024);
  EXPECT_EQ(find_own_lengths(sequences[0].lengths)->lengths,
            (std::vector<std::int64_t>{512, 256, 256}));
  EXPECT_EQ(find_own_lengths(sequences[1].lengths)->lengths, (std::vector<std::int64_t>{100, 924}));
}

TEST_F(Documents, SamplesAreSpreadOverTheFile) {
  std::string text;
  for (int i = 1; i <= 100; ++i) text += std::to_string(i) + "\n";
  const auto sequences = sample_documents(file_with(text), 4);
  ASSERT_EQ(sequences.size(), 4U);
  EXPECT_EQ(sequences[0].tokens, 1);
  EXPECT_EQ(sequences[3].tokens, 76);
}

TEST_F(Documents, WhatIsBrokenIsNamedByItsLine) {
  expect_refused("512\n12 x\n", "docs.txt:2");
  expect_refused("512\n\n0 100 50\n", "docs.txt:3: cu_seqlens ascend, and 50 follows 100");
  expect_refused("\n \n", "has no sequence of documents");
  EXPECT_THROW(sample_documents(file_with("1\n"), 0), InputError);
}

TEST(MeanAdvice, IsTheMeanOfTimesAndLeavesOutWhatCannotDoAll) {
  Choice slice{.c = testing::case_of("slice", "causal", 1024), .time_ms = {2, 1, 3}};
  slice.peak_bytes = {5, 5, 5};
  Choice flex = slice;
  flex.c.kernel = "flex";
  Advice first{.problem = slice.c, .choices = {slice, flex}};
  slice.time_ms = {4, 3, 5};
  slice.peak_bytes = {9, 9, 9};
  Advice second{.problem = slice.c, .choices = {slice}, .excluded = {{"flex", "too long"}}};
  const Advice mean = mean_advice(std::vector{first, second}, Objective::time);
  ASSERT_EQ(mean.choices.size(), 1U);
  EXPECT_EQ(mean.sequences, 2U);
  EXPECT_EQ(mean.choices[0].time_ms.value, 3);
  EXPECT_EQ(mean.choices[0].time_ms.low, 2);
  EXPECT_EQ(mean.choices[0].peak_bytes->value, 9);
  ASSERT_EQ(mean.excluded.size(), 1U);
  EXPECT_EQ(mean.excluded[0].reason, "too long");
}

}  // namespace
}  // namespace longca::advise
