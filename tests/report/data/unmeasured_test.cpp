#include "report/data/unmeasured.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/suite/axes.h"
#include "report/sample_records.h"

namespace longca::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Without the cells that `is_left_out` names.
template <typename Predicate>
std::vector<Record> run_without(std::vector<Record> records, const Predicate& is_left_out) {
  std::erase_if(records, [&](const Record& record) { return is_left_out(record.c); });
  return records;
}

TEST(Unmeasured, ARowIsAMaskWithTheCommandOfItsKernels) {
  const auto records = run_without(
      sample_records(), [](const Case& c) { return c.mask == "full" && c.tokens > 1024; });
  const View view = make_view(records);
  const auto rows = overview_rows(view);
  ASSERT_EQ(rows.size(), 4U) << "masks";
  const std::string command = rows.front().command + command_at(4096, 0);
  EXPECT_THAT(command, AllOf(HasSubstr("longca bench -a kernel="), HasSubstr(" -a mask=full "),
                             HasSubstr(" -a pass=forward,backward"), HasSubstr(" -a tokens=4096")));
  for (const std::string& kernel : view.kernels) EXPECT_THAT(command, HasSubstr(kernel));
  EXPECT_EQ(command.find("tokens="), command.rfind("tokens=")) << "only that of the column";
}

TEST(Unmeasured, OverRanksItNamesTheSchemesAndTheirNumber) {
  const auto records = over_ranks_records();
  const auto rows = overview_rows(make_view(records));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(rows.front().command + command_at(8192, 8),
              AllOf(HasSubstr("longca cp -a "), HasSubstr("-a scheme=ulysses,"),
                    HasSubstr("-a tokens=8192 -a ranks=8"), Not(HasSubstr("shard="))));
}

TEST(Unmeasured, AStepWasRunIfBothItsPassesWere) {
  const auto forward =
      run_without(sample_records(), [](const Case& c) { return c.pass == Pass::backward; });
  const View view = make_view(forward);
  const ViewGroup& group = view.sections.front().groups.front();
  EXPECT_TRUE(was_run(group, RankedWork::forward));
  EXPECT_FALSE(was_run(group, RankedWork::backward));
  EXPECT_FALSE(was_run(group, RankedWork::step));
  const auto both = sample_records();
  const View whole = make_view(both);
  EXPECT_TRUE(was_run(whole.sections.front().groups.front(), RankedWork::step));
}

}  // namespace
}  // namespace longca::testing
