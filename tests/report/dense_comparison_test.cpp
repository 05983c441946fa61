#include "report/dense_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "report/sample_records.h"
#include "report/sparse_records.h"

namespace longca::testing {
namespace {

using ::testing::ElementsAre;

std::string words(const std::vector<DensityRatio>& ratios) {
  return describe_break_even(find_break_even(ratios));
}

TEST(BreakEven, LiesBetweenTheDensitiesMeasured) {
  EXPECT_EQ(words({{0.2, 0.5}, {0.5, 0.8}, {0.8, 1.6}}), "0.57");
  EXPECT_EQ(words({{0.2, 0.5}, {0.8, 1.5}}), "0.50");
}

TEST(BreakEven, IsNeverExtrapolated) {
  EXPECT_EQ(words({{0.2, 0.2}, {0.5, 0.5}, {0.8, 0.999}}), "always, 0.2–0.8");
  EXPECT_EQ(words({{0.2, 1.001}, {0.8, 4}}), "never, 0.2–0.8");
  EXPECT_EQ(words({{0.5, 0.9}}), "faster at 0.5");
  EXPECT_EQ(words({{0.5, 1.1}}), "slower at 0.5");
  EXPECT_EQ(words({}), "");
}

TEST(BreakEven, AnEqualTimeIsNotFaster) {
  EXPECT_EQ(words({{0.5, 1}}), "slower at 0.5");
  EXPECT_EQ(words({{0.2, 0.5}, {0.5, 1}, {0.8, 1.5}}), "0.50");
  EXPECT_EQ(words({{0.2, 1}, {0.5, 1}}), "never, 0.2–0.5");
}

TEST(BreakEven, SaysWhereItIsNotOneDensity) {
  EXPECT_EQ(words({{0.2, 1.5}, {0.6, 0.5}}), "faster from 0.40");
  EXPECT_EQ(words({{0.2, 0.5}, {0.4, 1.5}, {0.6, 0.5}}), "changes at 0.30, 0.50");
}

const DensityTable& table_of(const DenseComparison& comparison, Pass pass, const char* heads,
                             const char* block) {
  const AxisTexts setting = {{"heads", heads}, {"block", block}};
  const auto found = std::find_if(
      comparison.tables.begin(), comparison.tables.end(),
      [&](const DensityTable& table) { return table.pass == pass && table.setting == setting; });
  EXPECT_NE(found, comparison.tables.end());
  return *found;
}

std::vector<std::string> break_evens(const DensityGroup& group) {
  std::vector<std::string> all;
  for (const DensityLine& line : group.lines) {
    all.push_back(line.kernel + ": " + describe_break_even(line.kernel_time));
  }
  return all;
}

TEST(DenseComparison, ATablePerHeadsBlockAndPass) {
  const std::vector<Record> records = sparse_records();
  const DenseComparison comparison = compare_with_dense(records);
  EXPECT_EQ(comparison.tables.size(), 8U);
  EXPECT_THAT(comparison.kernels, ElementsAre("cudnn", "fa3", "slice", "vsa", "flex", "naive"));
  for (const DensityTable& table : comparison.tables) {
    EXPECT_THAT(table.densities, ElementsAre(0.2, 0.5, 0.8));
    ASSERT_EQ(table.groups.size(), 2U);
    EXPECT_EQ(table.groups[0].tokens, 32768);
    EXPECT_EQ(table.groups[1].tokens, 65536);
  }
}

TEST(DenseComparison, EveryBlockSparseCellIsInExactlyOnePlace) {
  std::vector<Record> records = joined(sparse_records(), selected_records());
  std::reverse(records.begin(), records.end());
  const DenseComparison comparison = compare_with_dense(records);
  std::vector<const Record*> seen;
  for (const DensityTable& table : comparison.tables) {
    for (const DensityGroup& group : table.groups) {
      for (const DensityLine& line : group.lines) {
        for (const Record* cell : line.cells) {
          EXPECT_EQ(cell->c.kernel, line.kernel);
          EXPECT_EQ(cell->c.tokens, group.tokens);
          EXPECT_EQ(cell->c.pass, table.pass);
          EXPECT_EQ(line.at(*cell->c.density), cell);
          seen.push_back(cell);
        }
      }
    }
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
  const auto sparse = std::count_if(records.begin(), records.end(), [](const Record& record) {
    return record.c.density.has_value();
  });
  EXPECT_EQ(std::ssize(seen), sparse);
}

TEST(DenseComparison, TheDenseKernelIsTheFastestOfTheSameProblem) {
  const std::vector<Record> records = sparse_records();
  const DenseComparison comparison = compare_with_dense(records);
  const DensityGroup& group = table_of(comparison, Pass::backward, "64:8", "64").groups[1];
  ASSERT_NE(group.dense, nullptr);
  EXPECT_EQ(group.dense->c.kernel, "fa3");
  EXPECT_EQ(group.dense->c.tokens, 65536);
  EXPECT_EQ(group.dense->c.heads_k, 8);
  EXPECT_EQ(group.dense->c.pass, Pass::backward);
  EXPECT_NEAR(*time_of_dense(group.lines[0].at(0.5), group.dense), 0.02 + 1.04 * 1.1 * 0.5, 1e-9);
  EXPECT_THAT(break_evens(group), ElementsAre("slice: always, 0.2–0.8", "vsa: ", "flex: 0.41",
                                              "naive: never, 0.2–0.8"));
}

TEST(DenseComparison, WithoutADenseKernelNothingIsCompared) {
  const std::vector<Record> records = sparse_records();
  const DenseComparison comparison = compare_with_dense(records);
  const DensityGroup& group = table_of(comparison, Pass::forward, "64:64", "64").groups[1];
  EXPECT_EQ(group.dense, nullptr);
  EXPECT_EQ(time_of_dense(group.lines[0].at(0.5), group.dense), std::nullopt);
  EXPECT_THAT(break_evens(group), ElementsAre("slice: ", "vsa: ", "flex: ", "naive: "));
}

TEST(DenseComparison, ACellWithoutANumberLeavesTheOthers) {
  const std::vector<Record> records = sparse_records();
  const DenseComparison comparison = compare_with_dense(records);
  const DensityGroup& group = table_of(comparison, Pass::forward, "64:64", "128").groups[0];
  EXPECT_EQ(group.lines[2].at(0.8)->status.code, StatusCode::oom);
  EXPECT_EQ(group.lines[2].kernel_time.max_density, 0.5);
  EXPECT_EQ(describe_break_even(group.lines[2].kernel_time), "0.43");
  EXPECT_FALSE(group.lines[1].has_number());
}

/// The dense record that a change of all dense records leaves.
const Record* dense_after(void (*change)(Record&)) {
  static std::vector<Record> records;
  records = sparse_records();
  for (Record& record : records) {
    if (!record.c.density) change(record);
  }
  return compare_with_dense(records).tables.front().groups.front().dense;
}

TEST(DenseComparison, OtherWorkIsNotCompared) {
  EXPECT_NE(dense_after([](Record&) {}), nullptr);
  EXPECT_NE(dense_after([](Record& r) { r.c.seed = 1; }), nullptr);
  EXPECT_EQ(dense_after([](Record& r) { r.c.mask = "causal"; }), nullptr);
  EXPECT_EQ(dense_after([](Record& r) { r.c.heads_q = 32; }), nullptr);
  EXPECT_EQ(dense_after([](Record& r) { r.c.head_dim = 64; }), nullptr);
  EXPECT_EQ(dense_after([](Record& r) { r.c.dtype = DType::float16; }), nullptr);
  EXPECT_EQ(dense_after([](Record& r) { r.c.mode = "graph"; }), nullptr);
  EXPECT_EQ(dense_after([](Record& r) { r.c.sink = 1; }), nullptr);
  EXPECT_EQ(dense_after([](Record& r) { r.c.softcap = 30; }), nullptr);
  EXPECT_EQ(dense_after([](Record& r) { r.c.deterministic = 1; }), nullptr);
  EXPECT_EQ(dense_after([](Record& r) { r.c.inputs = "peaked"; }), nullptr);
  EXPECT_EQ(dense_after([](Record& r) { r.c.scheme = "usp"; }), nullptr);
  EXPECT_EQ(dense_after([](Record& r) { r.env = {{"gpus", {{{"model", "Other"}}}}}; }), nullptr);
  EXPECT_EQ(dense_after([](Record& r) { r.status.code = StatusCode::wrong; }), nullptr);
  EXPECT_EQ(dense_after([](Record& r) { r.metrics["time_ms"] = std::nan(""); }), nullptr);
  EXPECT_EQ(dense_after([](Record& r) { r.metrics["time_ms"] = 0; }), nullptr);
}

TEST(DenseComparison, InputsAreTheSameOrElseNormalAndNamed) {
  std::vector<Record> records = sparse_records();
  const auto dense = [&] {
    const DenseComparison comparison = compare_with_dense(records);
    const DensityGroup& group = comparison.tables.front().groups.front();
    return group.dense->c.kernel + " " + group.dense->c.inputs.value_or("normal") + ", " +
           group.dense_difference();
  };
  EXPECT_EQ(dense(), "fa3 normal, ");
  for (Record& record : records) {
    if (record.c.density) record.c.inputs = "clustered";
  }
  EXPECT_EQ(dense(), "fa3 normal, inputs normal");
  for (Record& record : records) {
    if (record.c.kernel == "cudnn") record.c.inputs = "clustered";
  }
  EXPECT_EQ(dense(), "cudnn clustered, ");
  for (Record& record : records) {
    if (record.c.kernel == "cudnn") record.c.inputs = "peaked";
  }
  EXPECT_EQ(dense(), "fa3 normal, inputs normal");
}

TEST(DenseComparison, MarksTiesOfADensityAndNobodyAlone) {
  std::vector<Record> records = sparse_records();
  const auto marked = [&] {
    const DenseComparison comparison = compare_with_dense(records);
    const DensityGroup& group = table_of(comparison, Pass::backward, "64:8", "64").groups.at(1);
    std::vector<std::string> names;
    for (const DensityLine& line : group.lines) {
      if (group.is_marked(line.at(0.5))) names.push_back(line.kernel);
    }
    return names;
  };
  EXPECT_THAT(marked(), ElementsAre("slice"));
  const auto time_of = [&](const char* kernel) -> double& {
    return std::ranges::find_if(records,
                                [&](const Record& record) {
                                  const Case& c = record.c;
                                  return c.kernel == kernel && c.density == 0.5 &&
                                         c.pass == Pass::backward && c.heads_k == 8 &&
                                         c.block == 64 && c.tokens == 65536;
                                })
        ->metrics.at("time_ms");
  };
  time_of("flex") = 1.005 * time_of("slice");
  EXPECT_THAT(marked(), ElementsAre("slice", "flex"));
  std::erase_if(
      records, [](const Record& record) { return record.c.density && record.c.kernel != "slice"; });
  EXPECT_THAT(marked(), ElementsAre());
}

TEST(DenseComparison, CausalBlocksStandBesideCausalAttention) {
  std::vector<Record> records = sparse_records();
  for (Record& record : records) {
    if (record.c.density && record.c.block == 64) record.c.block_causal = 1;
    if (record.c.kernel == "cudnn") record.c.mask = "causal";
  }
  for (const DensityTable& table : compare_with_dense(records).tables) {
    const Record* dense = table.groups[0].dense;
    ASSERT_NE(dense, nullptr);
    const bool is_causal =
        table.setting.back() == std::pair<std::string, std::string>{"block_causal", "1"};
    EXPECT_EQ(dense->c.mask, is_causal ? "causal" : "full");
    EXPECT_EQ(dense->c.kernel, is_causal ? "cudnn" : "fa3");
  }
}

TEST(DenseComparison, AStandardThatCasesLeaveOutIsNamedWhereOthersAre) {
  std::vector<Record> records = sparse_records();
  for (const auto& [name, value] : compare_with_dense(records).common) {
    EXPECT_NE(name, "selection") << value;
  }
  for (Record& record : records) {
    if (record.c.density && record.c.block == 128) record.c.selection = "scores";
  }
  for (const DensityTable& table : compare_with_dense(records).tables) {
    const std::string selection =
        table.groups[0].lines[0].cells[0]->c.block == 128 ? "scores" : "random";
    EXPECT_EQ(table.setting.back(), (std::pair<std::string, std::string>{"selection", selection}));
  }
}

TEST(DenseComparison, CellsOfTwoMachinesAreApart) {
  std::vector<Record> records = sparse_records();
  const std::size_t tables = compare_with_dense(records).tables.size();
  for (Record& record : records) {
    if (record.c.kernel == "slice") record.env = {{"gpus", {{{"model", "Other"}}}}};
  }
  const DenseComparison comparison = compare_with_dense(records);
  EXPECT_EQ(comparison.tables.size(), 2 * tables);
  for (const DensityTable& table : comparison.tables) {
    EXPECT_EQ(table.setting.back().first, "machine");
    const bool is_other = table.setting.back().second == "Other";
    EXPECT_EQ(table.groups.front().dense == nullptr, is_other);
  }
}

TEST(DenseComparison, SelectionAndWhatItCosts) {
  const std::vector<Record> records = joined(selected_records(), sparse_records());
  const DenseComparison comparison = compare_with_dense(records);
  const auto selected = std::find_if(
      comparison.tables.begin(), comparison.tables.end(), [](const DensityTable& table) {
        return table.groups[0].metric_at(0.2, "selection_ms").has_value();
      });
  ASSERT_NE(selected, comparison.tables.end());
  const DensityGroup& group = selected->groups[0];
  const Record* cell = group.fastest(0.2);
  ASSERT_NE(cell, nullptr);
  EXPECT_EQ(cell->c.kernel, "slice");
  EXPECT_NEAR(*group.metric_at(0.2, "kept_mass"), 0.8, 1e-12);
  EXPECT_NEAR(*group.largest_at(0.2, "error_full"), 0.15, 1e-12);
  const double end_to_end = *metric_of(cell, "end_to_end_ms");
  EXPECT_NEAR(*selection_share(cell), 1.5 / end_to_end, 1e-12);
  EXPECT_NEAR(*end_to_end_of_dense(cell, group.dense),
              end_to_end / *metric_of(group.dense, "time_ms"), 1e-12);
  EXPECT_GT(group.lines[0].end_to_end.measured, 0);
}

TEST(DenseComparison, OneDensityAtRandomHasNoTablesOfItsOwn) {
  EXPECT_TRUE(compare_with_dense(sample_records()).tables.empty());
  EXPECT_TRUE(compare_with_dense({}).tables.empty());
  std::vector<Record> records = selected_records();
  std::erase_if(records, [](const Record& record) { return record.c.density != 0.2; });
  EXPECT_EQ(compare_with_dense(records).tables.size(), 1U);
}

}  // namespace
}  // namespace longca::testing
