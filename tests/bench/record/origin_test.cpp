#include "bench/record/origin.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace longca::testing {
namespace {

Record made_by(const char* commit, const char* gpu, const char* reason) {
  Record record;
  record.c.device = "cuda";
  record.env = {{"commit", commit}, {"gpus", nlohmann::json::array({{{"model", gpu}}})}};
  record.status.reason = reason;
  return record;
}

std::vector<std::string> reasons_of(const std::vector<Record>& records) {
  std::vector<std::string> reasons;
  for (const Record& record : records) reasons.push_back(record.status.reason);
  return reasons;
}

TEST(Origin, MachineOfACaseInAnyEnvironment) {
  using nlohmann::json;
  const auto machine = [](const char* device, json env) {
    Record record;
    record.c.device = device;
    record.env = std::move(env);
    return machine_of_case(record);
  };
  const json both{{"cpu", {{"model", "A"}, {"cores_usable", 1}}},
                  {"gpus", json::array({{{"model", "G"}}})}};
  json with_driver = both;
  with_driver["gpu_driver"] = "570.1";
  EXPECT_EQ(machine("cpu", both), "A, 1 core");
  EXPECT_EQ(machine("cuda", both), "G");
  EXPECT_EQ(machine("cuda", with_driver), "G, driver 570.1");
  EXPECT_EQ(machine("cpu", with_driver), "A, 1 core");
  for (const json& odd : {json(), json(3), json::array(), json{{"cpu", 5}}, json{{"gpus", "x"}}}) {
    EXPECT_EQ(machine("cpu", odd), "");
    EXPECT_EQ(machine("cuda", odd), "");
  }
}

/// A file of as many environments is read in a moment whatever they differ in: commits, machines,
/// or one version of a plug-in each.
TEST(Origin, ManyThousandEnvironmentsAreGrouped) {
  using nlohmann::json;
  constexpr int kMany = 20'000;
  for (const char* kind : {"commit", "cpu", "plugins"}) {
    std::vector<Record> records(2 * kMany);
    for (int i = 0; i < 2 * kMany; ++i) {
      json env{{"version", "1"}, {"commit", "c"}};
      const std::string own = std::to_string(i % kMany);
      if (kind == std::string("commit")) env["commit"] = own;
      if (kind == std::string("cpu")) env["cpu"] = {{"model", own}};
      if (kind == std::string("plugins")) env["plugins"] = {{"a.so", own}, {"b.so", own}};
      records[static_cast<std::size_t>(i)].env = std::move(env);
    }
    const auto origins = origins_of(records);
    EXPECT_EQ(origins.size(), kMany) << kind;
    for (const OriginCells& origin : origins) ASSERT_EQ(origin.cells, 2) << kind;
  }
}

TEST(Origin, OnesWhosePluginsAreAmongTheOthersAreOne) {
  using nlohmann::json;
  const auto cells_of = [](const std::vector<json>& plugins) {
    std::vector<Record> records;
    for (const json& own : plugins) {
      Record record;
      record.env = json{{"version", "1"}, {"plugins", own}};
      records.push_back(std::move(record));
    }
    std::vector<int> cells;
    for (const OriginCells& origin : origins_of(records)) {
      cells.push_back(static_cast<int>(origin.cells));
    }
    return cells;
  };
  const json none = json::object();
  const json a{{"a", "1"}}, b{{"b", "1"}}, both{{"a", "1"}, {"b", "1"}}, other{{"a", "2"}};
  EXPECT_EQ(cells_of({a, both, a}), (std::vector{3}));
  EXPECT_EQ(cells_of({both, b, none, other}), (std::vector{3, 1}));
  EXPECT_EQ(cells_of({a, b, both}), (std::vector{2, 1})) << "the first that holds";
  EXPECT_EQ(cells_of({none, a, other, b}), (std::vector{4}));
  EXPECT_EQ(cells_of({other, a, none}), (std::vector{2, 1}));
}

TEST(Origin, OfAFileATimeoutThatWasTriedAgainIsLeftOut) {
  std::vector<Record> records = {made_by("a", "G", "first"), made_by("a", "H", "other"),
                                 made_by("b", "G", "second"), made_by("a", "G", "again")};
  EXPECT_EQ(reasons_of(latest_of_file(records)),
            (std::vector<std::string>{"again", "other", "second"}));
  records[2].status.code = StatusCode::crash;
  EXPECT_EQ(latest_of_file(records).size(), 3U) << "is a result";
  records[2].status.code = StatusCode::timeout;
  EXPECT_EQ(reasons_of(latest_of_file(records)), (std::vector<std::string>{"again", "other"}));
  records[3].status.code = StatusCode::timeout;  // the last of its build, and of all
  EXPECT_EQ(reasons_of(latest_of_file(records)), (std::vector<std::string>{"again", "other"}));
  records[1].status.code = StatusCode::timeout;
  EXPECT_EQ(latest_of_file(records).size(), 2U) << "of another machine, where nobody tried again";
}

TEST(Origin, TheLatestIsPerHostAndBuild) {
  const std::vector<Record> records = {made_by("a", "G", "first"), made_by("b", "G", "second"),
                                       made_by("a", "G", "again")};
  EXPECT_EQ(reasons_of(latest_of_each_build(records)),
            (std::vector<std::string>{"again", "second"}));
  std::vector<Record> hosts = {made_by("a", "G", "first"), made_by("a", "G", "other host")};
  hosts[1].env.own()["cpu"]["model"] = "Other CPU";
  EXPECT_EQ(machine_of_case(hosts[0]), machine_of_case(hosts[1]));
  EXPECT_EQ(reasons_of(latest_of_each_build(hosts)),
            (std::vector<std::string>{"first", "other host"}));
}

}  // namespace
}  // namespace longca::testing
