#include "report/ranks_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "report/sample_records.h"
#include "report/scheme_names.h"

namespace longca::testing {
namespace {

/// Cells over `ranks` at `tokens` in total.
std::vector<Record> records_at(const std::vector<std::pair<int, std::int64_t>>& places) {
  std::vector<Record> records;
  for (const auto& [ranks, tokens] : places) {
    records.push_back(over_ranks_records()[0]);
    records.back().c.ranks = ranks;
    records.back().c.tokens = tokens;
  }
  return records;
}

TEST(Scaling, OneLengthPerRankIsWeak) {
  EXPECT_EQ(make_scalings(over_ranks_records()), (std::vector<Scaling>{{1024, true}}));
}

TEST(Scaling, OneTotalLengthIsStrong) {
  EXPECT_EQ(make_scalings(records_at({{1, 1000}, {2, 1000}, {3, 1000}})),
            (std::vector<Scaling>{{1000, false}}));
}

TEST(Scaling, AGridOfLengthsAndRanksIsComparedByTotalLength) {
  const auto records =
      records_at({{1, 1024}, {2, 1024}, {4, 1024}, {1, 2048}, {2, 2048}, {4, 2048}});
  EXPECT_EQ(make_scalings(records), (std::vector<Scaling>{{1024, false}, {2048, false}}));
}

TEST(Scaling, BothKindsAreFoundBesideEachOther) {
  const auto records = records_at({{1, 64}, {2, 128}, {4, 256}, {8, 512}, {1, 640}, {2, 640}});
  EXPECT_EQ(make_scalings(records), (std::vector<Scaling>{{64, true}, {640, false}}));
}

TEST(Scaling, EveryCellIsInOne) {
  const auto records = records_at({{1, 64}, {2, 127}, {3, 500}, {4, 1}, {7, 0}, {4, 64}});
  const auto scalings = make_scalings(records);
  for (const Record& record : records) {
    EXPECT_TRUE(std::any_of(scalings.begin(), scalings.end(),
                            [&](const Scaling& s) { return s.contains(record.c); }));
  }
}

TEST(Scaling, Labels) {
  EXPECT_EQ((Scaling{65536, false}.label()), "64K tokens");
  EXPECT_EQ((Scaling{8192, true}.label()), "8K tokens per rank");
}

Record at_ranks(int ranks) {
  for (const Record& record : over_ranks_records()) {
    if (record.c.ranks == ranks && record.c.scheme == "ring_p2p") return record;
  }
  return {};
}

TEST(Baselines, OneDeviceAtTheSameLengthComesFirst) {
  const auto over_ranks = over_ranks_records();
  const Baseline baseline = Baselines(one_device_records(), over_ranks).of(at_ranks(4));
  EXPECT_EQ(baseline.name, "one device");
  EXPECT_EQ(baseline.tflops, 510);
  EXPECT_TRUE(baseline.same_work);
}

TEST(Baselines, OtherwiseOneRankAtTheSameTokensPerRank) {
  const auto over_ranks = over_ranks_records();
  const Baseline baseline = Baselines({}, over_ranks).of(at_ranks(4));
  EXPECT_EQ(baseline.name, "1 rank");
  EXPECT_EQ(baseline.tflops, 500);
  EXPECT_FALSE(baseline.same_work);
}

TEST(Baselines, OnACpuTheRanksShareItsCores) {
  std::vector<Record> single = one_device_records();
  for (Record& record : single) record.c.device = "cpu";
  Record four = at_ranks(4);
  four.c.device = "cpu";
  const Baseline baseline = Baselines(single, {}).of(four);
  EXPECT_EQ(baseline.name, "one device / ranks");
  EXPECT_EQ(baseline.tflops, 510.0 / 4);
}

TEST(Baselines, CellsWithoutANumberAreNone) {
  std::vector<Record> single = one_device_records();
  for (Record& record : single) record.status = {StatusCode::wrong, "off"};
  EXPECT_EQ(Baselines(single, {}).of(at_ranks(2)).tflops, 0);
  Record other = at_ranks(2);
  other.c.head_dim = 64;
  EXPECT_EQ(Baselines(one_device_records(), {}).of(other).tflops, 0);
}

TEST(Baselines, AreOfTheSameMachine) {
  std::vector<Record> single = one_device_records();
  for (Record& record : single)
    record.env.own()["gpus"] = nlohmann::json::array({{{"model", "other"}}});
  EXPECT_EQ(Baselines(single, {}).of(at_ranks(4)).tflops, 0);
}

TEST(SchemeNames, NameOnlyWhatVaries) {
  const auto records = over_ranks_records();
  const SchemeNames names(records);
  Case c = at_ranks(4).c;
  EXPECT_EQ(names.row(c), "ring_p2p zigzag");
  EXPECT_EQ(names.variant(c), "zigzag");
  c.scheme = "usp";
  c.factor = 2;
  EXPECT_EQ(names.row(c), "usp 2x2");
  EXPECT_EQ(names.variant(c), "");  // a factor that only follows the ranks is left out
  EXPECT_EQ(names.shards(), "contiguous: ulysses; zigzag: usp");
  EXPECT_EQ(names.transports(), "peer");
}

TEST(SchemeNames, FactorsAtEqualRanksAreLinesOfTheirOwn) {
  std::vector<Record> records = {at_ranks(4), at_ranks(4)};
  for (Record& record : records) record.c.scheme = "usp";
  records[0].c.factor = 2;
  records[1].c.factor = 4;
  const SchemeNames names(records);
  EXPECT_EQ(names.variant(records[0].c), "factor 2");
  EXPECT_EQ(names.variant(records[1].c), "factor 4");
}

TEST(SchemeNames, TransportsAreNamedForAllSchemesOfAKernelThatHasSeveral) {
  const auto records = two_kernels_records();
  const SchemeNames names(records);
  for (const Record& record : records) {
    const bool has_several = record.c.kernel == "naive";
    EXPECT_EQ(names.variant(record.c), has_several ? *record.c.transport : "") << record.c.key();
  }
}

}  // namespace
}  // namespace longca::testing
