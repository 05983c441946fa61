#include "bench/ranks/rank_trace.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace longca {
namespace {

TEST(RankTrace, ShowsTheRowsOfLaterStepsWhereTheyWereDone) {
  RankPlan plan;
  plan.buffers.resize(2, {.name = "dq", .role = TensorRole::dq, .tokens = 4, .heads = 1});
  const Region from{0, {0, 4}, {0, 1}}, to{1, {0, 4}, {0, 1}};
  const std::vector<Op> ops = {{.what = Copy{from, to}, .after = {}},
                               {.what = Clear{from}, .after = {}, .step = 3}};
  const std::array<OpTime, 3> times = {{{kEarlyRows, 0.25, 0.5}, {0, 0.125, 0.25}, {1, 0.5, 1}}};
  const auto events = nlohmann::json::parse(trace_of_rank(plan, ops, times, 16, DType::bfloat16));
  std::vector<std::string> seen;
  for (const auto& event : events) {
    if (event.at("ph") != "X") continue;
    EXPECT_EQ(event.at("tid"), 0);
    seen.push_back(event.at("name").get<std::string>() + " " + event.at("ts").dump() + " + " +
                   event.at("dur").dump());
  }
  EXPECT_EQ(seen,
            (std::vector<std::string>{"copy 125.0 + 125.0", "rows of later steps 250.0 + 250.0",
                                      "clear 500.0 + 500.0"}));
}

}  // namespace
}  // namespace longca
