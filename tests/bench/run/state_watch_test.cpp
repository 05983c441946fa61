#include "bench/run/state_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

namespace longca::testing {
namespace {

constexpr const char* kSpinSettings[] = {"OMP_WAIT_POLICY", "KMP_BLOCKTIME", "GOMP_SPINCOUNT"};

/// A thread that a kernel left behind.
class StateWatchTest : public ::testing::Test {
 protected:
  void SetUp() override { unset_all(); }
  void TearDown() override {
    unset_all();
    go_on_ = false;
    busy_.join();
  }
  static void unset_all() {
    for (const char* name : kSpinSettings) unsetenv(name);
  }

  StateWatch watch_{StateWatch::Threads::caller};

 private:
  std::atomic<bool> go_on_{true};
  std::thread busy_{[this] {
    while (go_on_) {
    }
  }};
};

TEST_F(StateWatchTest, LooksForBusyThreadsWhereOpenMpLetsIdleOnesSleep) {
  setenv("OMP_WAIT_POLICY", "passive", 1);
  setenv("KMP_BLOCKTIME", "0", 1);
  setenv("GOMP_SPINCOUNT", "many", 1);
  EXPECT_EQ(watch_.check_idle("timing"), "");
  EXPECT_EQ(watch_.take_finding(),
            "timing left a thread behind that goes on working while no call runs");
}

TEST_F(StateWatchTest, SaysBySettingOfWhichVariableItDoesNotLook) {
  const std::pair<const char*, const char*> settings[] = {
      {"OMP_WAIT_POLICY", " Active"}, {"KMP_BLOCKTIME", "200"},  {"KMP_BLOCKTIME", "infinite"},
      {"KMP_BLOCKTIME", "1s"},        {"GOMP_SPINCOUNT", "30k"}, {"GOMP_SPINCOUNT", "INFINITY"},
  };
  for (const auto& [name, value] : settings) {
    unset_all();
    setenv(name, value, 1);
    EXPECT_EQ(watch_.check_idle("timing"),
              std::string("not looked for: ") + name + "=" + value + " lets idle threads spin");
    EXPECT_EQ(watch_.take_finding(), "");
  }
}

}  // namespace
}  // namespace longca::testing
