#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/bench_run.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

/// `longca bench` over the documents of a file.
ProcessResult bench_documents(const std::filesystem::path& out, const std::filesystem::path& file,
                              std::vector<std::string> more = {}) {
  more.insert(more.end(),
              {"-a", "mask=document", "-a", "pass=forward", "-a", "lengths=" + file.string()});
  return bench(out, more);
}

TEST(OwnFilesRun, CellsOfOtherDocumentsAreOtherCells) {
  const TempDirectory folder;
  write_file(folder / "d.txt", "20\n30\n14\n");
  ASSERT_EQ(bench_documents(folder / "r.jsonl", folder / "d.txt").exit_code, 0);
  const auto first = read_records(folder / "r.jsonl").records;
  ASSERT_EQ(first.size(), 1U);
  EXPECT_TRUE(first[0].status.ok()) << first[0].status.reason;
  EXPECT_EQ(first[0].metrics.at("area"), 20 * 20 + 30 * 30 + 14 * 14);
  EXPECT_THAT(first[0].c.key(), HasSubstr(" lengths=d.txt-"));

  ASSERT_EQ(bench_documents(folder / "r.jsonl", folder / "d.txt", {"--resume"}).exit_code, 0);
  EXPECT_EQ(read_records(folder / "r.jsonl").records.size(), 1U) << "nothing is left to run";

  write_file(folder / "d.txt", "20\n44\n");
  ASSERT_EQ(bench_documents(folder / "r.jsonl", folder / "d.txt", {"--resume"}).exit_code, 0);
  const auto both = read_records(folder / "r.jsonl").records;
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[1].metrics.at("area"), 20 * 20 + 44 * 44);
  EXPECT_NE(both[1].c.key(), both[0].c.key());
}

TEST(OwnFilesRun, AnOutputIsNotTheirFile) {
  const TempDirectory folder;
  write_file(folder / "d.txt", "64");
  const auto result = bench_documents(folder / "d.txt", folder / "d.txt");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("d.txt"));
  EXPECT_EQ(read_file(folder / "d.txt"), "64");
}

TEST(OwnFilesRun, AMaskBringsItsLengthAndIsVerified) {
  const TempDirectory folder;
  write_file(folder / "mine.json", run_longca({"mask", "causal_blockwise", "--tokens", "96",
                                               "--seed", "3", "--lengths", "pile", "--json"})
                                       .out);
  // small_axes' tokens are given by hand there.
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"bench",
                                       "--out",
                                       (folder / "r.jsonl").string(),
                                       "-a",
                                       "kernel=naive,flash",
                                       "-a",
                                       "heads=2:1",
                                       "-a",
                                       "dim=16",
                                       "-a",
                                       "dtype=float32",
                                       "--time-limit",
                                       "0.01",
                                       "-a",
                                       "mask=" + (folder / "mine.json").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_longca(arguments);
  };
  ASSERT_EQ(run({}).exit_code, 0);
  const auto records = read_records(folder / "r.jsonl").records;
  ASSERT_EQ(records.size(), 4U);
  for (const Record& record : records) {
    EXPECT_TRUE(record.status.ok()) << record.status.reason;
    EXPECT_EQ(record.c.tokens, 96);
    EXPECT_TRUE(record.c.mask.starts_with("mine.json-")) << record.c.mask;
    EXPECT_FALSE(record.c.lengths || record.c.window);
    EXPECT_EQ(record.env->at("masks").at(record.c.mask), (folder / "mine.json").string());
  }
  ASSERT_EQ(run({"--resume"}).exit_code, 0);
  EXPECT_EQ(read_records(folder / "r.jsonl").records.size(), 4U);
  const auto longer = run({"-a", "tokens=97", "--resume"});
  EXPECT_EQ(longer.exit_code, 2);
  EXPECT_EQ(longer.err,
            "longca: suite 'quick' has no cell: all 4 are left out (mine.json is a mask of 96 "
            "tokens)\n");
}

TEST(OwnFilesRun, ADumpHoldsTheMaskThatWasGiven) {
  const TempDirectory folder;
  write_file(folder / "m.json", R"({"tokens":8,"slices":[[0,8,0,2,"full"]]})");
  const auto result =
      run_longca({"check", "-a", "kernel=flash", "-a", "heads=1", "-a", "dim=16", "-a",
                  "mask=" + (folder / "m.json").string(), "--dump", (folder / "dump").string()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const auto& cell : std::filesystem::directory_iterator(folder / "dump")) {
    EXPECT_THAT(read_file(cell.path() / "mask.json"),
                HasSubstr(R"("slices":[[0,8,0,2,"full"]],"area":16)"));
  }
}

}  // namespace
}  // namespace longca::testing
