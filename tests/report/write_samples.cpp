// write_samples DIR: writes the sample records as record files, for the browser test and for
// looking at the views with one's own eyes.

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "bench/record/record.h"
#include "bench/record/record_writer.h"
#include "report/html.h"
#include "report/sample_records.h"
#include "report/sparse_records.h"

namespace {

void write(const std::filesystem::path& path, const std::vector<longca::Record>& records) {
  longca::RecordWriter writer(path, longca::RecordWriter::Mode::replace);
  for (const longca::Record& record : records) writer.append(record);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_samples DIR\n", stderr);
    return 2;
  }
  const std::filesystem::path directory = argv[1];
  std::filesystem::create_directories(directory);
  write(directory / "sample.jsonl", longca::testing::sample_records());
  // A page, since a record file that named kernels so would be refused.
  std::ofstream hostile(directory / "hostile.html");
  longca::write_html(hostile, longca::testing::hostile_records());
  write(directory / "all_masks.jsonl", longca::testing::all_mask_records());
  write(directory / "traced.jsonl", longca::testing::traced_records());
  write(directory / "ranks.jsonl", longca::testing::over_ranks_records());
  write(directory / "kernels.jsonl", longca::testing::two_kernels_records());
  write(directory / "one_device.jsonl", longca::testing::one_device_records());
  write(directory / "sparse.jsonl", longca::testing::joined(longca::testing::sparse_records(),
                                                            longca::testing::selected_records()));
  return 0;
}
