// What a suite with only_what_runs leaves out of a machine's cells.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "bench/suite/cases.h"
#include "bench/suite/notices.h"
#include "bench/suite/suite.h"
#include "core/device.h"

namespace longca {
namespace {

/// Every kernel of a cell that runs here takes the cell's mask.
TEST(Cases, AMaskOfTheCommandLineMakesNoUnsupportedCells) {
  Suite suite = load_suite("quick");
  const AxisValues given = {{"mask", {"causal_document", "shared_question"}}, {"device", {"cpu"}}};
  override_axes(suite, given);
  leave_out_what_cannot_run(suite, given);
  const CaseList list = expand(suite);
  EXPECT_EQ(list.cases.size(), 2U * 2 * 2) << "masks, kernels, passes";
  for (const Case& c : list.cases) EXPECT_THAT(c.kernel, ::testing::AnyOf("naive", "flash"));
  EXPECT_EQ(describe_skipped(suite, list),
            "quick leaves out 16 cells: block_sparse takes block-sparse masks only (4 of them, and "
            "4 more reasons: --dry-run of bench and cp lists all)");
}

constexpr const char* kOnlyWhatRuns = R"(
only_what_runs = true
[axes]
mask = "causal"
pass = "forward"
kernel = ["naive", "slice"]
[[exceptions]]
when = { kernel = "slice" }
set = { device = "cuda" }
)";

/// The reasons by which cells are left out, in their order.
std::vector<std::string> reasons_with(const AxisValues& given) {
  Suite suite = parse_suite(kOnlyWhatRuns, "s.toml");
  override_axes(suite, given);
  leave_out_what_cannot_run(suite, given);
  std::vector<std::string> reasons;
  for (const CaseList::Skipped& skipped : expand(suite).skipped) reasons.push_back(skipped.reason);
  return reasons;
}

TEST(Cases, OfDevicesThatThisMachineLacksAreLeftOut) {
  const Support& gpu = Device::available(DeviceKind::cuda);
  EXPECT_EQ(reasons_with({}),
            gpu.ok() ? std::vector<std::string>{} : std::vector<std::string>{gpu.reason});
  EXPECT_THAT(reasons_with({{"device", {"cpu"}}}),
              ::testing::ElementsAre("slice runs on cuda, not on cpu"));
  EXPECT_THAT(reasons_with({{"device", {"cuda"}}}), ::testing::IsEmpty()) << "it was asked for";
  EXPECT_THAT(reasons_with({{"kernel", {"slice"}}}), ::testing::IsEmpty()) << "it was asked for";
}

TEST(Cases, OfASuiteWithoutKernelsAreThoseOfAllThatRun) {
  Suite suite = parse_suite("only_what_runs = true\n[axes]\npass = \"forward\"\n", "s.toml");
  leave_out_what_cannot_run(suite, {});
  const CaseList list = expand(suite);
  std::set<std::string> kernels;
  for (const Case& c : list.cases) kernels.insert(c.kernel);
  EXPECT_TRUE(kernels.contains("naive"));
  EXPECT_TRUE(kernels.contains("flash"));
  EXPECT_FALSE(kernels.contains("slice")) << "runs on cuda, not on cpu";
}

}  // namespace
}  // namespace longca
