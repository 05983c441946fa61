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

TEST(Origin, TheLatestOfAFileIsPerMachine) {
  const std::vector<Record> records = {made_by("a", "G", "first"), made_by("a", "H", "other"),
                                       made_by("b", "G", "again")};
  EXPECT_EQ(reasons_of(latest_on_each_machine(records)),
            (std::vector<std::string>{"again", "other"}));
}

TEST(Origin, TheLatestOfSeveralFilesIsPerBuildToo) {
  const std::vector<Record> records = {made_by("a", "G", "first"), made_by("b", "G", "second"),
                                       made_by("a", "G", "again")};
  EXPECT_EQ(reasons_of(latest_of_each_build(records)),
            (std::vector<std::string>{"again", "second"}));
}

}  // namespace
}  // namespace longca::testing
