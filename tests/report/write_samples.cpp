// write_samples DIR: writes the sample records as record files, for the browser test and for
// looking at the views with one's own eyes.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

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

/// The sample on a second machine too, on which naive is fast.
std::vector<longca::Record> two_machines() {
  std::vector<longca::Record> records = longca::testing::sample_records();
  for (longca::Record record : longca::testing::sample_records()) {
    record.env.own()["cpu"]["model"] = "Other CPU";
    if (record.c.kernel == "naive" && record.status.ok()) record.metrics["time_ms"] = 1e-3;
    records.push_back(std::move(record));
  }
  return records;
}

/// The sample, and fewer cells of other heads, and of another dtype.
std::vector<longca::Record> several_problems() {
  std::vector<longca::Record> records = longca::testing::sample_records();
  for (const longca::Record& record : longca::testing::sample_records()) {
    if (record.c.mask != "full") continue;
    records.push_back(record);
    records.back().c.heads_k = record.c.heads_q;
    records.push_back(record);
    records.back().c.dtype = longca::DType::bfloat16;
  }
  return records;
}

/// Twelve kernels at six lengths.
std::vector<longca::Record> many_kernels() {
  std::vector<longca::Record> records;
  longca::Record record = longca::testing::sample_records().front();
  for (int kernel = 0; kernel < 12; ++kernel) {
    for (int length = 1; length <= 6; ++length) {
      record.c.kernel = "kernel_" + std::to_string(kernel);
      record.c.tokens = 1024 * length;
      record.metrics["time_ms"] = length * (1 + kernel);
      records.push_back(record);
    }
  }
  return records;
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
  write(directory / "machines.jsonl", two_machines());
  write(directory / "problems.jsonl", several_problems());
  write(directory / "many.jsonl", many_kernels());
  write(directory / "traced.jsonl", longca::testing::traced_records());
  write(directory / "ranks.jsonl", longca::testing::over_ranks_records());
  write(directory / "kernels.jsonl", longca::testing::two_kernels_records());
  write(directory / "one_device.jsonl", longca::testing::one_device_records());
  write(directory / "sparse.jsonl", longca::testing::joined(longca::testing::sparse_records(),
                                                            longca::testing::selected_records()));
  return 0;
}
