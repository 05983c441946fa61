// The probes of a GPU, and `longca calibrate` on one.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "calibrate/fit_platform.h"
#include "calibrate/probe_work.h"
#include "calibrate/probe_worker.h"
#include "core/cuda/cuda_device.h"
#include "cost/platform.h"
#include "gpu/gpu_test.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using calibrate::Probe;
using calibrate::ProbeWhat;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;

class CudaCalibrate : public GpuTest {
 protected:
  static void expect_verifies(const Probe& probe) {
    const auto work = calibrate::make_probe_work(probe, DeviceKind::cuda);
    work->poison();
    gpu().synchronize();
    EXPECT_FALSE(work->is_right(1)) << to_text(probe) << " without a call";
    work->call();
    gpu().synchronize();
    EXPECT_TRUE(work->is_right(1)) << to_text(probe);
  }
};

TEST_F(CudaCalibrate, CopiesAndProductsAreVerified) {
  for (const std::int64_t bytes : {1, 65536, 1'000'001}) expect_verifies({ProbeWhat::copy, bytes});
  for (const std::int64_t rows : {64, 1024}) expect_verifies({ProbeWhat::product, rows});
}

TEST_F(CudaCalibrate, KernelsQueueBehindEachOther) {
  const auto ms = [](std::int64_t kernels) {
    return calibrate::run_probe({ProbeWhat::launch, kernels}, DeviceKind::cuda, 0.05).ms;
  };
  EXPECT_GT(ms(65), ms(1)) << "65 kernels take longer than one";
}

TEST_F(CudaCalibrate, WritesAPageThatIsReadBackAndChecked) {
  const TempDirectory folder;
  const std::string page = folder.path() / "mine.toml";
  const std::vector<std::string> small{
      "-a",      "tokens=1K,2K", "-a",        "mask=full,causal", "-a",
      "ranks=1", "-a",           "heads=8:2", "--rounds",         "2"};
  std::vector<std::string> arguments{"calibrate", "--quiet", "--out", page};
  arguments.insert(arguments.end(), small.begin(), small.end());
  const ProcessResult result = run_longca(arguments, {.timeout_s = 300});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const cost::Platform mine = cost::load_platform(page);
  EXPECT_EQ(cost::parse_platform(cost::to_toml(mine), "p.toml"), mine);
  EXPECT_EQ(mine.card, gpu().properties().name);
  for (const char* key :
       {"memory.bytes_per_second", "product.burst_flops_per_second",
        "product.sustained_flops_per_second", "launch.seconds_per_kernel",
        "kernel.forward.tile_flops_per_second", "kernel.backward.tile_flops_per_second",
        "call.forward.cycles_per_second", "call.backward.cycles_per_second"}) {
    EXPECT_THAT(mine.spread, Contains(Key(key)));
    EXPECT_THAT(result.out, HasSubstr(key));
  }
  std::vector<std::string> check{"calibrate", "--quiet", "--check", page, "--min-effect", "1e9"};
  check.insert(check.end(), small.begin(), small.end());
  const ProcessResult same = run_longca(check, {.timeout_s = 300});
  EXPECT_EQ(same.exit_code, 0) << same.err << same.out;
  EXPECT_THAT(same.out, HasSubstr("0 of "));
  EXPECT_EQ(run_longca({"simulate", "--platform",          page,    "--quiet",
                        "-a",       "kernel=slice",        "-a",    "mask=causal",
                        "-a",       "pass=forward",        "-a",    "scheme=ring_p2p",
                        "-a",       "shard=best",          "-a",    "ranks=2",
                        "-a",       "tokens_per_rank=512", "--out", folder.path() / "s.jsonl"})
                .exit_code,
            0);
}

/// Of two GPUs and MPI; skipped without.
class CudaCalibrateLinks : public CudaCalibrate {
 protected:
  void SetUp() override {
    CudaCalibrate::SetUp();
    if (IsSkipped()) return;
    if (count_cuda_devices() < 2) GTEST_SKIP() << "one GPU has no links";
    const auto schemes = nlohmann::json::parse(run_longca({"list", "schemes", "--json"}).out);
    transports_ = schemes.at(0).at("transports");
    if (!transports_here("mpi")) GTEST_SKIP() << transports_.at("mpi").at("reason");
  }
  bool transports_here(const char* name) const { return transports_.at(name).at("status") == "ok"; }

  const std::vector<std::string> small_{"-a", "tokens=1K", "-a",       "mask=full,causal",
                                        "-a", "heads=8:2", "--rounds", "2"};
  nlohmann::json transports_;
};

TEST_F(CudaCalibrateLinks, BetweenTwoGpusAreMeasuredAndVerified) {
  const TempDirectory folder;
  const std::string page = folder.path() / "mine.toml";
  std::vector<std::string> arguments{"calibrate", "-a", "ranks=2", "--out", page};
  arguments.insert(arguments.end(), small_.begin(), small_.end());
  const ProcessResult result = run_longca(arguments, {.timeout_s = 400});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const cost::Platform mine = cost::load_platform(page);
  EXPECT_EQ(cost::parse_platform(cost::to_toml(mine), "p.toml"), mine);
  EXPECT_THAT(mine.spread, Contains(Key("links.bytes_per_second")));
  EXPECT_THAT(result.out, HasSubstr("links.bytes_per_second"));
  int transports = 0;
  for (const char* transport : {"peer", "nccl"}) {
    for (const char* shape : {"ring", "all_to_all"}) {
      const auto times = mine.messages.find(std::string(transport) + "." + shape);
      if (times == mine.messages.end()) {
        EXPECT_THAT(result.err,
                    HasSubstr(std::string("the transport ") + transport + " cannot be measured: "));
        continue;
      }
      ++transports;
      EXPECT_EQ(times->second.seconds.begin()->first, 1024);
      EXPECT_GE(times->second.seconds.rbegin()->first, 64 << 20);
    }
  }
  EXPECT_GT(transports, 0);
}

TEST_F(CudaCalibrateLinks, MoreRanksThanGpusAreRefused) {
  const int gpus = count_cuda_devices();
  const ProcessResult result = run_longca({"calibrate", "-a", "ranks=" + std::to_string(gpus + 1)});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("need a GPU each, and there are"));
  EXPECT_THAT(result.err, HasSubstr("give at most -a ranks=" + std::to_string(gpus)));
  const ProcessResult host = run_longca({"calibrate", "-a", "ranks=2", "-a", "transport=mpi"});
  EXPECT_EQ(host.exit_code, 2);
  EXPECT_THAT(host.err,
              HasSubstr("does not carry messages between GPUs: there it is nccl or peer"));
}

}  // namespace
}  // namespace longca::testing
