#include "report/view.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "report/sample_records.h"

namespace longca::testing {
namespace {

TEST(View, MasksComeInTheTablesOrderAndLengthsAscend) {
  std::vector<Record> records = sample_records();
  std::reverse(records.begin(), records.end());
  const View view = make_view(records);
  ASSERT_EQ(view.sections.size(), 1U);
  std::vector<std::string> groups;
  for (const ViewGroup& group : view.sections[0].groups) {
    groups.push_back(group.mask + ' ' + format_tokens(group.tokens));
  }
  EXPECT_EQ(groups,
            (std::vector<std::string>{"full 1K", "full 4K", "sliding_window_causal 1K",
                                      "sliding_window_causal 4K", "causal_document 1K",
                                      "causal_document 4K", "block_sparse 1K", "block_sparse 4K"}));
}

TEST(View, UnknownMasksComeLast) {
  std::vector<Record> records = sample_records();
  records[0].c.mask = "a_mask_of_tomorrow";
  const View view = make_view(records);
  EXPECT_EQ(view.sections[0].groups.back().mask, "a_mask_of_tomorrow");
}

TEST(View, EveryRecordIsInExactlyOnePlace) {
  const std::vector<Record> records = sample_records();
  const View view = make_view(records);
  std::vector<const Record*> seen;
  for (const ViewGroup& group : view.sections[0].groups) {
    for (const ViewRow& row : group.rows) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        if (row.pass(pass) == nullptr) continue;
        EXPECT_EQ(row.pass(pass)->c.pass, pass);
        EXPECT_EQ(row.pass(pass)->c.kernel, row.kernel);
        EXPECT_EQ(row.pass(pass)->c.mask, group.mask);
        seen.push_back(row.pass(pass));
      }
    }
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(seen.size(), records.size());
  EXPECT_EQ(view.cells(), static_cast<int>(records.size()));
}

TEST(View, ACellThatLacksAnAxisIsNotTakenForOneThatHasIt) {
  std::vector<Record> records = {sample_records()[0], sample_records()[0]};
  records[1].c.window = 7;
  const View view = make_view(records);
  ASSERT_EQ(view.sections.size(), 2U);
  EXPECT_TRUE(view.sections[0].setting.empty());
  EXPECT_EQ(view.sections[1].setting, (AxisTexts{{"window", "7"}}));
}

TEST(View, TheBestIsTheFastestOkCellOfAtLeastTwo) {
  std::vector<Record> records = {sample_records()[0], sample_records()[1]};
  records[0].metrics["tflops"] = 1;
  records[1].metrics["tflops"] = 2;
  EXPECT_EQ(make_view(records).sections[0].groups[0].best(Pass::forward), &records[1]);
  records[1].status.code = StatusCode::wrong;
  EXPECT_EQ(make_view(records).sections[0].groups[0].best(Pass::forward), nullptr);
  EXPECT_EQ(make_view(records).sections[0].groups[0].best(Pass::backward), nullptr);
}

TEST(View, ReasonsAreCountedOnce) {
  const std::vector<Record> records = sample_records();
  const std::vector<Reason> reasons = collect_reasons(make_view(records));
  int cells = 0;
  for (const Reason& reason : reasons) cells += reason.cells;
  const auto failed = std::count_if(records.begin(), records.end(),
                                    [](const Record& record) { return !record.status.ok(); });
  EXPECT_EQ(cells, failed);
  EXPECT_EQ(reasons[0].cells, 12);
}

TEST(View, OfNothingIsEmpty) {
  const View view = make_view({});
  EXPECT_EQ(view.cells(), 0);
  EXPECT_TRUE(view.sections.empty());
  EXPECT_EQ(describe_counts(view), "0 cells");
}

TEST(View, EveryStatusButOkHasAMarkOfItsOwn) {
  std::string marks;
  for (const StatusCode code : marked_statuses()) {
    EXPECT_EQ(status_mark(code).size(), 1U);
    EXPECT_EQ(marks.find(status_mark(code)), std::string::npos);
    marks += status_mark(code);
  }
  EXPECT_EQ(marks.size(), 6U);
  EXPECT_EQ(status_mark(StatusCode::unsupported), "X");
  EXPECT_EQ(status_mark(StatusCode::oom), "E");
}

TEST(View, MachineOfAnyEnvironment) {
  using nlohmann::json;
  const auto machine = [](const char* device, json env) {
    Record record;
    record.c.device = device;
    record.env = std::move(env);
    return describe_machine(record);
  };
  const json both{{"cpu", {{"model", "A"}, {"cores_usable", 1}}},
                  {"gpus", json::array({{{"model", "G"}}})}};
  EXPECT_EQ(machine("cpu", both), "A, 1 core");
  EXPECT_EQ(machine("cuda", both), "G");
  for (const json& odd : {json(), json(3), json::array(), json{{"cpu", 5}}, json{{"gpus", "x"}}}) {
    EXPECT_EQ(machine("cpu", odd), "");
    EXPECT_EQ(machine("cuda", odd), "");
  }
}

}  // namespace
}  // namespace longca::testing
