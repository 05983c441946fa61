#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "dist/dist_test.h"

namespace longca::testing {
namespace {

MpiWorld* the_world = nullptr;

/// What ranks but 0 print: failures alone.
class FailurePrinter : public ::testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}

 private:
  void OnTestStart(const ::testing::TestInfo& info) override { test_ = &info; }
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    fmt::print("rank {}: {}.{} {}:{}: {}\n", rank_, test_->test_suite_name(), test_->name(),
               result.file_name() != nullptr ? result.file_name() : "", result.line_number(),
               result.summary());
    std::fflush(stdout);
  }

  int rank_;
  const ::testing::TestInfo* test_ = nullptr;
};

}  // namespace

MpiWorld& world() {
  return *the_world;
}

CellOptions cell_options(double time_limit_s) {
  CellOptions options;
  options.timed = time_limit_s > 0;
  options.limits.time_limit_s = time_limit_s;
  return options;
}

RankTeam make_team(MpiWorld& ranks) {
  return {.control = ranks.control(),
          .ranks_per_node = ranks.local_size(),
          .available = [](const std::string&) { return Support{}; },
          .connect = [&ranks](const std::string&) { return ranks.make_communicator(); }};
}

int run_on_all_ranks() {
  MpiWorld world;
  the_world = &world;
  if (const int rank = world.control().rank(); rank != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter(rank));
  }
  const int failed = RUN_ALL_TESTS();
  return world.control().max(failed) > 0 ? 1 : 0;
}

}  // namespace longca::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return longca::testing::run_on_all_ranks();
}
