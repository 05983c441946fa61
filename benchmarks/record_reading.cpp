// How long reading records takes: lines of the size of committed ones (1.8 KB), on one core.
// Reading is nearly all that `compare`, `advise` and `report` do; the bound is 10,000 records in
// half a second.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/record/environment.h"
#include "bench/record/metrics.h"
#include "bench/record/record.h"
#include "bench/suite/axes.h"
#include "register_all.h"

namespace longca {
namespace {

Record record_of(std::int64_t i) {
  Record record;
  record.c.kernel = "flash";
  record.c.mask = "causal_document";
  record.c.tokens = 1024 + i;
  record.c = canonical(record.c);
  double value = 1.2345678901234567;
  for (const MetricInfo& metric : metric_table().first(16))
    record.metrics[std::string(metric.name)] = value *= 1.7;
  for (int sample = 0; sample < 20; ++sample) record.samples_ms.push_back(value /= 1.01);
  record.stop = "converged";
  record.env = collect_environment();
  record.at = "2026-05-01T10:00:00Z";
  return record;
}

std::string lines_of(std::int64_t count) {
  std::string lines;
  for (std::int64_t i = 0; i < count; ++i) lines += to_line(record_of(i)) + '\n';
  return lines;
}

void parse(benchmark::State& state) {
  const std::string lines = lines_of(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(parse_records(lines, "records"));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(lines.size()));
}

/// What every view begins with.
void keep_latest(benchmark::State& state) {
  const std::vector<Record> records = parse_records(lines_of(state.range(0)), "records").records;
  for (auto _ : state) benchmark::DoNotOptimize(latest_records(records));
}

}  // namespace

void register_all() {
  constexpr std::int64_t kRecords = 10000;
  benchmark::RegisterBenchmark("parse", parse)->Arg(kRecords)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("keep_latest", keep_latest)
      ->Arg(kRecords)
      ->Unit(benchmark::kMillisecond);
}

}  // namespace longca
