// Kernels that fail on the device in every way known: each costs its cell alone.

#include <gmock/gmock.h>

#include <filesystem>

#include "bench/bench_run.h"
#include "gpu/gpu_test.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

/// It lies beside this binary, also where both were carried to another machine.
std::string fault_plugin() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fault_plugin_cuda.so";
}

std::vector<Record> run(const std::string& kernels, const std::vector<std::string>& more,
                        ProcessResult& result) {
  const TempDirectory folder;
  std::vector<std::string> arguments{
      "--plugin",          fault_plugin(), "-a", "device=cuda", "-a", "pass=forward", "-a",
      "kernel=" + kernels, "--case-limit", "5"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  ProcessOptions options;
  options.timeout_s = 280;
  result = bench(folder / "faults.jsonl", arguments, options);
  return read_records(folder / "faults.jsonl").records;
}

class CudaFaults : public GpuTest {
 protected:
  void expect(const std::string& kernel, StatusCode code, const std::string& part) const {
    const Status status = find_record(records, kernel, Pass::forward).status;
    EXPECT_EQ(to_string(status.code), to_string(code)) << kernel << ": " << status.reason;
    EXPECT_THAT(status.reason, HasSubstr(part)) << kernel;
  }

  ProcessResult result;
  std::vector<Record> records;
};

TEST_F(CudaFaults, EachCostsItsCellAlone) {
  const std::vector<std::string> faulty = {"illegal_address",
                                           "illegal_later",
                                           "illegal_then_throw",
                                           "trap",
                                           "bad_launch",
                                           "hang",
                                           "tracked_memory",
                                           "untracked_memory",
                                           "nan",
                                           "input",
                                           "later",
                                           "waits",
                                           "jumps_the_queue",
                                           "hidden_memory"};
  std::string kernels = "cuda_none";
  for (const std::string& name : faulty) kernels += ",cuda_" + name;
  records = run(kernels, {}, result);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(records.size(), faulty.size() + 1);

  expect("cuda_none", StatusCode::ok, "");
  EXPECT_THAT(result.err, HasSubstr("cuda_none | a line from the kernel\n"));
  expect("cuda_illegal_address", StatusCode::crash, "cudaErrorIllegalAddress");
  expect("cuda_illegal_address", StatusCode::crash, "forward");
  expect("cuda_illegal_later", StatusCode::crash, "timing");
  expect("cuda_illegal_later", StatusCode::crash, "cudaErrorIllegalAddress");
  expect("cuda_illegal_then_throw", StatusCode::crash, "cudaErrorIllegalAddress");
  expect("cuda_trap", StatusCode::crash, "cudaError");
  expect("cuda_bad_launch", StatusCode::crash, "cudaErrorInvalid");
  expect("cuda_hang", StatusCode::timeout, "forward had not ended when the cell's 5 s were up");
  expect("cuda_tracked_memory", StatusCode::oom,
         "in forward: an allocation of 4398046511104 bytes");
  expect("cuda_untracked_memory", StatusCode::oom, "cudaErrorMemoryAllocation");
  expect("cuda_nan", StatusCode::wrong, "");
  expect("cuda_input", StatusCode::wrong, "wrote into its inputs");
  expect("cuda_later", StatusCode::wrong, "in a repetition with other inputs: ");
  expect("cuda_waits", StatusCode::ok, "");
  expect("cuda_hidden_memory", StatusCode::ok, "");
  expect("cuda_jumps_the_queue", StatusCode::wrong, "does not keep to the stream");
}

TEST_F(CudaFaults, WhatIsOddShowsInTheRecord) {
  records = run("cuda_none,cuda_waits,cuda_hidden_memory", {}, result);
  ASSERT_EQ(records.size(), 3U) << result.err;
  const Record good = find_record(records, "cuda_none", Pass::forward);
  EXPECT_FALSE(good.notes.contains("hold"));
  const Record waits = find_record(records, "cuda_waits", Pass::forward);
  EXPECT_THAT(waits.notes.at("hold"), HasSubstr("the kernel waits on the host"));
  const Record hidden = find_record(records, "cuda_hidden_memory", Pass::forward);
  constexpr double kMost = 0.9 * (1 << 29);  // the driver takes and returns some MB of its own
  EXPECT_GT(hidden.metrics.at("device_bytes"), kMost);
  EXPECT_LT(hidden.metrics.at("peak_bytes"), kMost);
  EXPECT_LT(good.metrics.at("device_bytes"), kMost);
}

TEST_F(CudaFaults, AGraphIsMadeWhereItCanBe) {
  records = run("cuda_none,cuda_waits,cuda_illegal_address", {"-a", "mode=graph"}, result);
  expect("cuda_none", StatusCode::ok, "");
  expect("cuda_waits", StatusCode::unsupported, "cannot be captured in a CUDA graph: ");
  expect("cuda_illegal_address", StatusCode::crash, "cudaErrorIllegalAddress");
}

TEST_F(CudaFaults, WithoutAFaultEveryModeIsTimed) {
  records = run("cuda_none", {"-a", "mode=all"}, result);
  ASSERT_EQ(records.size(), 3U) << result.err;
  for (const Record& record : records) {
    EXPECT_TRUE(record.status.ok()) << record.status.reason;
    EXPECT_GT(record.metrics.at("time_ms"), 0) << record.c.mode;
    EXPECT_TRUE(record.trace) << record.c.mode;
  }
}

TEST_F(CudaFaults, AMemoryLimitIsOneOfTheDevice) {
  records = run("cuda_none", {"-a", "tokens=4K", "--memory-limit", "1"}, result);
  expect("cuda_none", StatusCode::oom, "pass the memory limit of 1 MiB");
  records = run("cuda_none", {"-a", "tokens=1K", "--memory-limit", "4096"}, result);
  expect("cuda_none", StatusCode::ok, "");
}

TEST_F(CudaFaults, ADumpHoldsWhatTheDeviceHad) {
  const TempDirectory folder;
  std::vector<std::string> arguments{"check", "--plugin", fault_plugin(), "--dump",
                                     folder.path().string()};
  for (const auto& argument : small_axes()) arguments.push_back(argument);
  for (const char* axis : {"kernel=naive,cuda_none", "device=cpu,cuda", "pass=forward"}) {
    arguments.insert(arguments.end(), {"-a", axis});
  }
  result = run_longca(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  const std::string rest = "_causal_tokens-64_heads-2x1_dim-16_dtype-float32_seed-42_device-";
  const auto cpu = folder / ("naive" + rest + "cpu");
  const auto cuda = folder / ("cuda_none" + rest + "cuda");
  for (const char* name : {"q.npy", "k.npy", "v.npy", "do.npy"}) {
    EXPECT_GT(read_file(cpu / name).size(), 128U) << name;
    EXPECT_TRUE(read_file(cuda / name) == read_file(cpu / name)) << name;
  }
  for (const char* name : {"o.npy", "lse.npy"}) {
    EXPECT_EQ(read_file(cuda / name).size(), read_file(cpu / name).size()) << name;
  }
}

/// Six times a fifth of the device's memory: processes end in time.
TEST_F(CudaFaults, KeptMemoryEndsTheProcessAndShowsInTheRecord) {
  records = run("cuda_keeps_memory",
                {"-a", "mask=full", "-a", "tokens=16,32,48,64,80,96", "-a", "heads=2:1", "-a",
                 "dim=16", "-a", "dtype=float32"},
                result);
  ASSERT_EQ(records.size(), 6U) << result.err;
  for (const Record& record : records) {
    EXPECT_EQ(to_string(record.status.code), "ok") << record.status.reason;
    EXPECT_THAT(record.notes.at("memory left"), HasSubstr("still allocated"));
  }
}

}  // namespace
}  // namespace longca::testing
