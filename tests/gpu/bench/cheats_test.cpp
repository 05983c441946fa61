// Kernels on the device that are right when they are verified and do less work when they are timed:
// `wrong` in every mode and pass, and those around them that do their work are `ok`.

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "bench/bench_run.h"
#include "gpu/gpu_test.h"
#include "mask/generators.h"

namespace longca::testing {
namespace {

constexpr const char* kCheats[] = {"filled", "address", "samples", "early",
                                   "odd",    "third",   "halves"};

/// A file that lies beside this binary, also where both were carried to another machine.
std::string beside(const char* name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

void expect_wrong(const Record& record) {
  EXPECT_EQ(to_string(record.status.code), "wrong")
      << record.c.key() << " " << record.status.reason;
  // Work that comes late may also come while the queue is held back for the next call.
  EXPECT_THAT(record.status.reason,
              ::testing::AnyOf(::testing::HasSubstr("in a repetition with other inputs: "),
                               ::testing::HasSubstr("it does not keep to the stream")));
  EXPECT_FALSE(record.metrics.contains("time_ms")) << record.c.key();
}

class CudaCheats : public GpuTest {
 protected:
  static std::vector<Record> run(const std::string& kernels, const std::vector<std::string>& more,
                                 ProcessOptions options = {}) {
    const TempDirectory folder;
    std::vector<std::string> arguments{"-a", "device=cuda",      "-a",           "tokens=256",
                                       "-a", "dim=64",           "--case-limit", "60",
                                       "-a", "kernel=" + kernels};
    arguments.insert(arguments.end(), more.begin(), more.end());
    options.timeout_s = 280;
    const ProcessResult result = bench(folder / "cheats.jsonl", arguments, options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_records(folder / "cheats.jsonl").records;
  }
};

TEST_F(CudaCheats, InCppAreWrong) {
  std::string kernels = "cheat_not";
  for (const char* name : kCheats) kernels += std::string(",cheat_") + name;
  int cheats = 0;
  for (const Record& record : run(kernels, {"--plugin", beside("cheat_plugin_gpu.so"), "-a",
                                            "dtype=all", "-a", "mode=burst,sustained"})) {
    if (record.status.code == StatusCode::unsupported) continue;
    if (record.c.kernel == "cheat_not") {
      EXPECT_TRUE(record.status.ok()) << record.c.key() << " " << record.status.reason;
      continue;
    }
    ++cheats;
    expect_wrong(record);
  }
  EXPECT_GE(cheats, 7 * 2 * 2);
}

TEST_F(CudaCheats, InPythonAreWrong) {
  const auto cells = [](const std::string& cheat) {
    return run(
        "cheat", {"--plugin", beside("cheats.py"), "-a", "mode=burst,sustained"},
        {.environment = {{"LONGCA_CHEAT", cheat}, {"LONGCA_EXAMPLE", beside("torch_dense.py")}}});
  };
  const char* python = std::getenv("LONGCA_PYTHON");
  const ProcessResult torch = run_process({python != nullptr ? python : "python3", "-c",
                                           "import torch; torch.zeros(1, device='cuda')"});
  if (torch.exit_code != 0) GTEST_SKIP() << "no PyTorch that sees the GPU: " << torch.err;
  const auto honest = cells("honest");
  ASSERT_EQ(honest.size(), 4U);
  for (const Record& record : honest) {
    EXPECT_TRUE(record.status.ok()) << record.c.key() << " " << record.status.reason;
  }
  for (const char* cheat : kCheats) {
    SCOPED_TRACE(cheat);
    const auto records = cells(cheat);
    EXPECT_EQ(records.size(), 4U);
    for (const Record& record : records) expect_wrong(record);
  }
}

/// Our own kernels and cuDNN: their results follow changed inputs, to the bit or within the bounds.
class HonestKernels : public CudaCheats, public ::testing::WithParamInterface<std::string> {};

TEST_P(HonestKernels, AreNotAccusedInAnyMode) {
  const auto records = run("naive,slice,flashmask_native,fa2_sparse_native,cudnn",
                           {"-a", "mask=" + GetParam(), "-a", "mode=burst,graph,sustained", "-a",
                            "heads=4:2", "-a", "dim=128", "-a", "block=64", "-a", "dtype=all"});
  int ok = 0;
  for (const Record& record : records) {
    EXPECT_NE(record.status.code, StatusCode::wrong)
        << record.c.key() << " " << record.status.reason;
    if (record.status.ok()) ++ok;
  }
  EXPECT_GT(ok, 0);
}

std::vector<std::string> all_masks() {
  std::vector<std::string> names;
  for (const MaskTraits& traits : mask_table()) names.push_back(traits.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Masks, HonestKernels, ::testing::ValuesIn(all_masks()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace longca::testing
