// `longca calibrate` from outside, on the CPU, with the smallest cells.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/record/record.h"
#include "cost/platform.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Arguments = std::vector<std::string>;

class Calibrate : public ::testing::Test {
 protected:
  ProcessResult run(const std::string& verb, const Arguments& more) const {
    Arguments arguments{verb};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_longca(arguments, {.directory = folder_.path().string()});
  }
  /// With cells of 64 to 256 tokens, twice.
  ProcessResult calibrate(const Arguments& more) const {
    Arguments arguments{
        "-a",        "device=cpu", "-a", "mask=full,causal", "-a",  "tokens=64,256", "-a",
        "heads=2:1", "--rounds",   "2",  "--time-limit",     "0.01"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run("calibrate", arguments);
  }
  void expect_refused(const Arguments& more, const std::string& part) const {
    const ProcessResult result = run("calibrate", more);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(StartsWith("longca: "), HasSubstr(part)));
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  }

  const TempDirectory folder_;
  const std::string page_ = (folder_ / "mine.toml").string();
};

TEST_F(Calibrate, WritesAPageThatIsCheckedReplacedAndSimulated) {
  const ProcessResult result = calibrate({"--out", "mine.toml"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* key :
       {"memory.bytes_per_second", "product.burst_flops_per_second",
        "product.sustained_flops_per_second", "kernel.any.flops_per_second",
        "rates.flash.forward.flops_per_second", "rates.flash.backward.flops_per_second"}) {
    EXPECT_THAT(result.out, HasSubstr(key));
  }
  EXPECT_THAT(result.out, AllOf(HasSubstr("±"), HasSubstr("mine.toml written")));
  EXPECT_THAT(result.out, HasSubstr("not measured: links, "));
  EXPECT_THAT(result.err, AllOf(HasSubstr("round 1 of 2"), HasSubstr("[16/16] round 2 of 2")));
  const std::string page = read_file(page_);
  EXPECT_THAT(page, AllOf(StartsWith("# The rates of"), HasSubstr("name = \"mine\"\n"),
                          HasSubstr("kind = \"cpu\"\n"), HasSubstr("\n[rates.flash.forward]\n"),
                          HasSubstr("\n[spread]\n")));

  // What has moved: nothing by a factor of ten million, and all where the page is a lie.
  const ProcessResult same = calibrate({"--check", "mine.toml", "--min-effect", "1e9"});
  EXPECT_EQ(same.exit_code, 0) << same.err << same.out;
  EXPECT_THAT(same.out, HasSubstr("\n0 of "));
  std::string lie = page;
  const std::string key = "\nburst_flops_per_second = ";
  const std::size_t at = lie.find(key) + key.size();
  write_file(folder_ / "lie.toml", lie.replace(at, lie.find('\n', at) - at, "1e-9"));
  const ProcessResult moved = calibrate({"--check", "lie.toml", "--min-effect", "1e9"});
  EXPECT_EQ(moved.exit_code, 1) << moved.err;
  EXPECT_THAT(moved.out, AllOf(HasSubstr("  moved\n"), HasSubstr("\n1 of ")));

  // A page is replaced only when that is asked for, and kept.
  const ProcessResult again = calibrate({"--out", "mine.toml"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("mine.toml is there already: --force replaces it and keeps "
                                   "mine.toml.bak"));
  EXPECT_EQ(calibrate({"--out", "mine.toml", "--force", "--quiet"}).exit_code, 0);
  EXPECT_EQ(read_file(folder_ / "mine.toml.bak"), page);

  const ProcessResult simulated =
      run("simulate", {"--platform", "mine.toml", "-a", "kernel=flash", "-a", "mask=causal", "-a",
                       "ranks=2", "-a", "tokens_per_rank=256", "-a", "scheme=ring_p2p", "-a",
                       "shard=best", "-a", "pass=forward,backward", "--quiet", "--out", "s.jsonl"});
  if (read_file(page_).find("\ngpus = 1\n") == std::string::npos) {
    ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
    const auto records = read_records(folder_ / "s.jsonl").records;
    ASSERT_EQ(records.size(), 2U);
    for (const Record& record : records) {
      EXPECT_TRUE(record.status.ok()) << record.status.reason;
      EXPECT_EQ(record.c.platform, "mine");
      EXPECT_EQ(record.notes.at("rates"), "of the platform's page");
      EXPECT_GT(record.metrics.at("time_ms"), 0);
    }
  }
}

/// Why no exchange is measured here, "" if it is.
std::string why_no_mpi() {
  const nlohmann::json schemes =
      nlohmann::json::parse(run_longca({"list", "schemes", "--json"}).out);
  return schemes.at(0).at("transports").at("mpi").at("reason");
}

TEST_F(Calibrate, MeasuresMessagesBetweenRanks) {
  if (const std::string why = why_no_mpi(); !why.empty()) GTEST_SKIP() << why;
  const ProcessResult result = calibrate({"-a", "ranks=2", "--out", "mine.toml"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("round 1 of 2: exchanges over mpi among 2 ranks, "));
  EXPECT_THAT(result.out, AllOf(HasSubstr("links.bytes_per_second"),
                                HasSubstr("mpi.all_to_all              mpi.ring\n1K  "),
                                Not(HasSubstr("not measured: links"))));
  const cost::Platform mine = cost::load_platform(page_);
  EXPECT_EQ(cost::parse_platform(cost::to_toml(mine), "p.toml"), mine);
  for (const char* pattern : {"mpi.ring", "mpi.all_to_all"}) {
    const auto& seconds = mine.messages.at(pattern).seconds;
    ASSERT_GE(seconds.size(), 2U);
    EXPECT_EQ(seconds.begin()->first, 1024);
    for (const auto& [bytes, time] : seconds) {
      EXPECT_TRUE(
          mine.spread.contains(std::string("messages.") + pattern + "." + std::to_string(bytes)));
    }
  }
  EXPECT_THAT(mine.links.measured, HasSubstr(" exchanges over mpi among 2 ranks of one host"));
  EXPECT_THAT(mine.links.measured, Not(HasSubstr("h200")));

  // A link that the page has wrong is named; without -a ranks the command says what it leaves out.
  std::string lie = read_file(page_);
  for (const char* key : {"\n1024 = ", "\n2048 = "}) {
    const std::size_t at = lie.find(key, lie.find("\n[messages.mpi.ring]\n")) + 8;
    lie.replace(at, lie.find('\n', at) - at, "1e-12");
  }
  write_file(folder_ / "lie.toml", lie);
  const ProcessResult moved =
      calibrate({"-a", "ranks=2", "--check", "lie.toml", "--min-effect", "1e5", "--quiet"});
  EXPECT_EQ(moved.exit_code, 1) << moved.err;
  EXPECT_THAT(moved.out, ::testing::ContainsRegex("messages.mpi.ring.1024 .*  moved\n"));
  const ProcessResult without = calibrate({"--check", "lie.toml", "--min-effect", "1e9"});
  EXPECT_EQ(without.exit_code, 0) << without.out;
  EXPECT_THAT(without.err, HasSubstr("the page's links are not checked: give -a ranks=N"));
}

TEST_F(Calibrate, RanksThatEndAreNamed) {
  if (const std::string why = why_no_mpi(); !why.empty()) GTEST_SKIP() << why;
  const auto calibrate_by = [&](const std::string& launcher) {
    write_file(folder_ / "launcher", "#!/bin/sh\n" + launcher);
    std::filesystem::permissions(folder_ / "launcher", std::filesystem::perms::owner_all);
    return run_longca(
        {"calibrate", "-a", "device=cpu", "-a", "ranks=2", "--quiet", "--out", "mine.toml"},
        {.directory = folder_.path().string(),
         .environment = {{"LONGCA_MPIRUN", (folder_ / "launcher").string()}}});
  };
  const ProcessResult killed = calibrate_by(
      "mpirun \"$@\" &\nchild=$!\nsleep 2\nread -r rank rest < /proc/$child/task/$child/children\n"
      "kill -9 $rank\nwait $child\n");
  EXPECT_EQ(killed.exit_code, 71) << killed.out;
  EXPECT_THAT(killed.err, AllOf(StartsWith("longca: "), HasSubstr("rank 0 was ended by signal 9")));
  const ProcessResult none = calibrate_by("echo no slots\nexit 3\n");
  EXPECT_EQ(none.exit_code, 71) << none.out;
  EXPECT_THAT(none.err, HasSubstr("the ranks could not start: no slots"));
  EXPECT_FALSE(std::filesystem::exists(page_));
}

TEST_F(Calibrate, LinksThatAreNotThereAreOneSentence) {
  const Arguments cpu{"-a", "device=cpu"};
  const auto on_cpu = [&](Arguments more) {
    more.insert(more.end(), cpu.begin(), cpu.end());
    return more;
  };
  expect_refused(on_cpu({"-a", "ranks=2,4"}), "ranks=2,4 is one number here");
  expect_refused(on_cpu({"-a", "ranks=0"}), "ranks");
  expect_refused(on_cpu({"-a", "transport=mpi"}),
                 "transport=mpi is between two or more ranks: give -a ranks=2");
  expect_refused(on_cpu({"-a", "ranks=2", "-a", "transport=pear"}), "did you mean 'peer'?");
  const ProcessResult missing = run_longca(
      {"calibrate", "-a", "device=cpu", "-a", "ranks=2"},
      {.directory = folder_.path().string(), .environment = {{"LONGCA_MPIRUN", "no-such-mpirun"}}});
  EXPECT_EQ(missing.exit_code, 2) << missing.out;
  // In a build without MPI the reason is that.
  EXPECT_THAT(missing.err,
              ::testing::AnyOf(HasSubstr("no-such-mpirun"), HasSubstr("libopenmpi-dev")));
  EXPECT_EQ(std::ranges::count(missing.err, '\n'), 1) << missing.err;
  if (!why_no_mpi().empty()) return;
  expect_refused(on_cpu({"-a", "ranks=2", "-a", "transport=nccl"}),
                 "the transport nccl does not carry messages between CPUs: there it is mpi");
}

TEST_F(Calibrate, BadInputIsOneSentence) {
  const Arguments cpu{"-a", "device=cpu"};
  const auto on_cpu = [&](Arguments more) {
    more.insert(more.end(), cpu.begin(), cpu.end());
    return more;
  };
  expect_refused(on_cpu({"--kernel", "flsh"}), "did you mean 'flash'?");
  expect_refused(on_cpu({"--check", "h20"}), "unknown platform 'h20' (did you mean 'h200'?)");
  expect_refused(on_cpu({"--check", "no.toml"}), "cannot read no.toml: No such file");
  expect_refused(on_cpu({"--check", "h200"}), "h200 has no figure with a spread");
  expect_refused(on_cpu({"--check", "h200", "--out", "x.toml"}), "--check writes nothing");
  expect_refused(on_cpu({"--rounds", "1"}), "--rounds 1: a spread needs at least 2");
  expect_refused(on_cpu({"--rounds", "-1"}), "--rounds");
  expect_refused(on_cpu({"--min-effect", "-1", "--check"}), "--min-effect -1");
  expect_refused(on_cpu({"--min-effect", "1"}), "--min-effect is of --check");
  expect_refused(on_cpu({"--out", "x.json"}), "--out x.json: the name of a platform's page");
  expect_refused(on_cpu({"--out", "no/such/folder/x.toml"}), "no/such/folder/x.toml");
  expect_refused(on_cpu({"-a", "scheme=magi"}), "the axis 'scheme' is of cells over ranks");
  expect_refused({"-a", "device=cpu,cuda"}, "device is cpu or cuda here");
  write_file(folder_ / "other.toml", "description = \"a suite\"\n");
  expect_refused(on_cpu({"--out", "other.toml", "--force"}),
                 "other.toml holds something else than a platform and is not replaced");
}

/// Before the device is measured, which takes seconds.
TEST_F(Calibrate, AKernelOfAnotherDeviceIsRefusedAtOnce) {
  expect_refused({"-a", "device=cpu", "--kernel", "slice", "--out", "mine.toml"},
                 "the kernel slice cannot be measured here: slice runs on cuda, not on cpu");
  EXPECT_FALSE(std::filesystem::exists(page_));
}

TEST_F(Calibrate, AnotherMachinesPageIsNotChecked) {
  ASSERT_EQ(calibrate({"--out", "mine.toml", "--quiet"}).exit_code, 0);
  std::string page = read_file(page_);
  const std::size_t at = page.find("\ncard = \"") + 9;
  write_file(folder_ / "other.toml", page.replace(at, page.find('"', at) - at, "another CPU"));
  expect_refused({"-a", "device=cpu", "--check", "other.toml"},
                 "mine is of another CPU, and this machine has ");
}

TEST_F(Calibrate, AKernelWithoutARightResultHasNoRate) {
  const ProcessResult result = calibrate({"--kernel", "block_sparse", "--out", "mine.toml"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("the kernel block_sparse has no cell that is ok: unsupported"));
  EXPECT_FALSE(std::filesystem::exists(page_));
}

TEST_F(Calibrate, AMissingFolderOfPagesIsNoObstacle) {
  const TempDirectory configs;
  std::filesystem::copy(std::string(LONGCA_CONFIGS) + "/calibrate_cpu.toml", configs.path());
  const ProcessResult result =
      run_longca({"calibrate", "-a", "device=cpu", "-a", "mask=full", "-a", "tokens=64", "-a",
                  "heads=1:1", "--rounds", "2", "--time-limit", "0.01", "--quiet"},
                 {.directory = folder_.path().string(),
                  .environment = {{"LONGCA_CONFIGS", configs.path().string()}}});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  int pages = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    pages += entry.path().extension() == ".toml" ? 1 : 0;
  }
  EXPECT_EQ(pages, 1) << "the page is in the current folder";
}

}  // namespace
}  // namespace longca::testing
