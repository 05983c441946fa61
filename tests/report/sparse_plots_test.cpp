#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/plots.h"
#include "report/sample_records.h"
#include "report/sparse_records.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> stems_of(const std::vector<fs::path>& files) {
  std::vector<std::string> stems;
  for (const fs::path& file : files) {
    EXPECT_GT(fs::file_size(file), 2000U) << file;
    if (file.extension() == ".svg") stems.push_back(file.stem());
  }
  return stems;
}

/// One table: 64:8 heads, blocks of 64, forward.
std::vector<Record> small_records() {
  std::vector<Record> records = sparse_records();
  std::erase_if(records, [](const Record& record) {
    return record.c.heads_k != 8 || record.c.pass != Pass::forward ||
           record.c.block.value_or(64) != 64;
  });
  return records;
}

TEST(SparsePlots, AFigurePerTable) {
  const TempDirectory folder;
  const auto records = joined(small_records(), selected_records());
  EXPECT_EQ(stems_of(write_sparse_plots(compare_with_dense(records), folder.path())),
            (std::vector<std::string>{"sparse-block_sparse-forward-time-selection-random",
                                      "sparse-block_sparse-forward-time-selection-scores",
                                      "sparse-block_sparse-forward-mass-selection-scores"}));
}

TEST(SparsePlots, ShowWhatTheRecordsSay) {
  const TempDirectory folder;
  write_plots(small_records(), folder.path());
  const std::string svg = read_file(folder / "sparse-block_sparse-forward-time.svg");
  for (const char* text : {"block_sparse, forward pass: time ÷ dense over density", "heads 64:8",
                           "32K tokens; dense: fa3, 50.3 ms", "64K tokens; dense: fa3", ">slice<",
                           ">flex<", "above: naive from 5.02", ">fastest dense kernel<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_THAT(svg, Not(HasSubstr(">vsa<")));
  EXPECT_THAT(svg, Not(HasSubstr("with selection")));
}

TEST(SparsePlots, KeptMassBesideSpeed) {
  const TempDirectory folder;
  write_plots(joined(small_records(), selected_records()), folder.path());
  const std::string svg =
      read_file(folder / "sparse-block_sparse-forward-mass-selection-scores.svg");
  for (const char* text :
       {">kept mass<", ">times dense speed<", "with selection and planning", ">0.1<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
}

TEST(SparsePlots, NoneWithoutDenseCells) {
  const TempDirectory folder;
  EXPECT_TRUE(write_sparse_plots(compare_with_dense(selected_records()), folder.path()).empty());
  EXPECT_TRUE(write_sparse_plots(compare_with_dense(sample_records()), folder.path()).empty());
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(SparsePlots, NamesCannotSteerGnuplot) {
  const TempDirectory folder;
  const std::string canary = (folder / "canary").string();
  std::vector<Record> records = small_records();
  for (Record& record : records) {
    record.c.kernel += "'; system('touch " + canary + "') #`touch " + canary + "`\n\"@x";
  }
  write_sparse_plots(compare_with_dense(records), folder.path());
  EXPECT_FALSE(fs::exists(canary));
  EXPECT_THAT(read_file(folder / "sparse-block_sparse-forward-time.svg"), HasSubstr("system("));
}

}  // namespace
}  // namespace longca::testing
