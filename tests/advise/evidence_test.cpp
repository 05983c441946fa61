#include "advise/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "bench/record/record_writer.h"
#include "core/error.h"
#include "planted.h"
#include "support/temp_directory.h"

namespace longca::advise {
namespace {

using testing::case_of;
using ::testing::HasSubstr;
using testing::kCard;
using testing::record_of;

TEST(Evidence, TheLatestRecordOfACaseCounts) {
  const Case c = case_of("slice", "causal", 4096);
  Record old = record_of(c, 2);
  Record late = record_of(c, 1);
  late.at = "2026-02-01T00:00:00Z";
  for (const auto& records : {std::vector{old, late}, std::vector{late, old}}) {
    const Evidence evidence = testing::evidence_of(records);
    ASSERT_EQ(evidence.cells().size(), 1U);
    EXPECT_EQ(evidence.find(c)->time_ms, 1.0);
    EXPECT_EQ(evidence.memory_bytes(), 150e9);
  }
}

/// One outlier among 7 samples ends the interval of their median upwards alone.
TEST(Evidence, ATimeHasTheIntervalOfItsSamples) {
  const Case c = case_of("slice", "causal", 4096);
  Record record = record_of(c, 3.4);
  record.samples_ms = {3.5, 3.4, 3.3, 3.4, 23, 3.2, 3.6};
  record.metrics["time_ci_pct"] = 290;
  const auto interval_of = [&] { return *testing::evidence_of({record}).find(c)->interval; };
  EXPECT_EQ(interval_of(), (TimeInterval{3.2, 23}));
  record.samples_ms.clear();
  EXPECT_GT(interval_of().low, 0);
}

TEST(Evidence, HoldsTheCellsOfOneCard) {
  const Case c = case_of("slice", "causal", 4096);
  const Evidence evidence = testing::evidence_of(
      {record_of(c, 2), record_of(case_of("slice", "causal", 8192), 2, 1e9, "NVIDIA A100")});
  EXPECT_EQ(evidence.cells().size(), 1U);
  EXPECT_EQ(evidence.find(case_of("slice", "causal", 8192)), nullptr);
}

TEST(Evidence, WithoutLeavesOutWhatItIsTold) {
  const Evidence all = testing::evidence_of(testing::planted_records());
  const Evidence rest = all.without([](const EvidenceCell& cell) { return cell.c.mask == "full"; });
  EXPECT_EQ(rest.cells().size(), all.cells().size() * 4 / 5);
  EXPECT_EQ(rest.find(case_of("slice", "full", 4096)), nullptr);
  EXPECT_NE(rest.find(case_of("slice", "causal", 4096)), nullptr);
}

TEST(ChooseCard, ByWordsOfItsNameElseAsksWhich) {
  const Case c = case_of("slice", "causal", 4096);
  const std::vector<RecordSource> two{
      {"a.jsonl", {record_of(c, 1), record_of(c, 2, 1e9, "NVIDIA A100")}}};
  EXPECT_EQ(choose_card(two, "h200", "").name, kCard);
  EXPECT_EQ(choose_card(two, "a100", "cuda").name, "NVIDIA A100");
  try {
    choose_card(two, "b300", "");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'b300'"));
    EXPECT_THAT(error.what(), HasSubstr("NVIDIA H200, NVIDIA A100"));
    EXPECT_THAT(error.what(), HasSubstr("longca bench dense"));
  }
  std::vector<RecordSource> many{{"a.jsonl", {}}};
  for (int i = 0; i < 1000; ++i) {
    many[0].records.push_back(record_of(c, 1, 1e9, "GPU " + std::to_string(i)));
  }
  try {
    choose_card(many, "", "");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("GPU 9 and 990 more: choose one by --platform"));
  }
  EXPECT_EQ(choose_card(two, "nvidia h200", "").name, kCard);
  EXPECT_THROW(choose_card(two, "h200", "cpu"), InputError);
  EXPECT_THROW(choose_card({}, "", ""), InputError);
}

TEST(ChooseCard, AnotherCardIsNotTakenForIt) {
  const Case c = case_of("slice", "causal", 4096);
  const std::vector<RecordSource> cards{
      {"a.jsonl",
       {record_of(c, 1), record_of(c, 2, 1e9, "NVIDIA H100 80GB HBM3"),
        record_of(c, 2, 1e9, "NVIDIA L40S"), record_of(c, 2, 1e9, "NVIDIA H200 NVL")}}};
  const auto error_of = [&](const std::string& asked) -> std::string {
    try {
      return "took " + choose_card(cards, asked, "").name;
    } catch (const InputError& error) {
      return error.what();
    }
  };
  EXPECT_THAT(error_of("h20"), HasSubstr("no record is of a card 'h20' (did you mean 'H200'?)"));
  EXPECT_THAT(error_of("L40"), HasSubstr("no record is of a card 'L40' (did you mean 'L40S'?)"));
  EXPECT_THAT(error_of("h"), HasSubstr("no record is of a card 'h'"));
  EXPECT_THAT(error_of("nvidia"), HasSubstr("'nvidia' names more than one of them"));
  EXPECT_THAT(error_of("h200-nvl"), "took NVIDIA H200 NVL");
  EXPECT_THAT(error_of("NVIDIA H200"), "took NVIDIA H200") << "the whole name";
}

/// More of them than there are threads.
TEST(Evidence, SourcesComeInTheOrderOfTheirFiles) {
  const longca::testing::TempDirectory folder;
  std::vector<std::filesystem::path> files;
  for (int i = 1; i <= 40; ++i) {
    files.push_back(folder / (std::to_string(i) + ".jsonl"));
    RecordWriter writer(files.back(), RecordWriter::Mode::replace);
    writer.append(record_of(case_of("slice", "causal", 64 * i), i));
  }
  const std::vector<RecordSource> sources = read_sources(files);
  ASSERT_EQ(sources.size(), files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(sources[i].file, files[i].string());
    ASSERT_EQ(sources[i].records.size(), 1U);
    EXPECT_EQ(sources[i].records.front().c.tokens, 64 * static_cast<std::int64_t>(i + 1));
  }
  files.push_back(folder / "none.jsonl");
  EXPECT_THROW(read_sources(files), InputError);
}

}  // namespace
}  // namespace longca::advise
