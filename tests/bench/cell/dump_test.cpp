#include "bench/cell/dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <map>

#include "attention/inputs/inputs.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::UnorderedElementsAre;

/// Dumps a cell with inputs of that seed and a backward pass.
void dump(const std::filesystem::path& folder, std::uint64_t seed, bool sink = false) {
  Problem problem;
  problem.tokens_q = problem.tokens_k = 64;
  problem.heads_q = problem.heads_k = 2;
  problem.head_dim = 16;
  problem.head_dim_v = 8;
  problem.device = DeviceKind::cpu;
  problem.backward = true;
  problem.sink = sink;
  MaskSpec spec;
  spec.tokens = 64;
  const Outputs outputs = Outputs::for_problem(problem);
  outputs.poison_forward();
  outputs.poison_backward();
  dump_cell(folder, Device::get(DeviceKind::cpu), make_inputs(problem, seed, InputStyle::normal),
            outputs, generate_mask(spec), spec);
}

std::map<std::string, std::string> contents(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files[entry.path().filename()] = read_file(entry.path());
  }
  return files;
}

TEST(Dump, ReplacesTheFilesOfAnEarlierOne) {
  const TempDirectory folder;
  dump(folder / "cell", 1);
  const auto first = contents(folder / "cell");
  EXPECT_THAT(first, UnorderedElementsAre(Key("q.npy"), Key("k.npy"), Key("v.npy"), Key("do.npy"),
                                          Key("o.npy"), Key("lse.npy"), Key("dq.npy"),
                                          Key("dk.npy"), Key("dv.npy"), Key("mask.json")));
  for (const char* name : {"v.npy", "do.npy", "o.npy", "dv.npy"}) {
    EXPECT_THAT(first.at(name), HasSubstr("(64, 2, 8)")) << name;
  }
  for (const char* name : {"q.npy", "k.npy", "dq.npy", "dk.npy"}) {
    EXPECT_THAT(first.at(name), HasSubstr("(64, 2, 16)")) << name;
  }
  dump(folder / "cell", 2);
  const auto second = contents(folder / "cell");
  EXPECT_EQ(second.size(), first.size());
  EXPECT_NE(second.at("q.npy"), first.at("q.npy"));
  EXPECT_EQ(second.at("mask.json"), first.at("mask.json"));
}

TEST(Dump, SinksAreANumberPerHead) {
  const TempDirectory folder;
  dump(folder / "cell", 1, true);
  const auto files = contents(folder / "cell");
  for (const char* name : {"sink.npy", "dsink.npy"}) {
    ASSERT_TRUE(files.contains(name)) << name;
    EXPECT_THAT(files.at(name), HasSubstr("'<f4'")) << name;
    EXPECT_THAT(files.at(name), HasSubstr("'shape': (2,), }")) << name;
  }
}

TEST(Dump, AFullDiskLeavesTheEarlierFiles) {
  const TempDirectory folder;
  dump(folder / "cell", 1);
  const auto before = contents(folder / "cell");
  // A limit on the size of files cuts a write short as a full disk does.
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit tight = limit;
  tight.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  try {
    dump(folder / "cell", 2);
    ADD_FAILURE() << "nothing was refused";
  } catch (const DumpFailed& error) {
    EXPECT_THAT(error.what(), HasSubstr("q.npy: File too large"));
    EXPECT_FALSE(error.path_is_wrong());
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(contents(folder / "cell"), before);
}

}  // namespace
}  // namespace longca::testing
