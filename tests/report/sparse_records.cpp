#include "report/sparse_records.h"

#include "bench/suite/axes.h"

namespace longca::testing {
namespace {

constexpr double kDenseTflops = 700;
constexpr double kSelectionMs = 1.5;

/// A kernel whose time grows with the density, ÷ that of the fastest dense one.
struct SparseKernel {
  const char* name;
  double start;
  double slope;
};
constexpr SparseKernel kKernels[] = {
    {"slice", 0.02, 1.1}, {"vsa", 0.04, 1.6}, {"flex", 0.1, 2.1}, {"naive", 5, 0.1}};

Record make_record(const char* kernel, const char* mask, std::int64_t tokens, int heads_k,
                   Pass pass) {
  Record record;
  record.c.kernel = kernel;
  record.c.mask = mask;
  record.c.tokens = tokens;
  record.c.heads_q = 64;
  record.c.heads_k = heads_k;
  record.c.pass = pass;
  record.c.device = "cuda";
  record.stop = "converged";
  record.env = {{"gpus", nlohmann::json::array({{{"model", "Example GPU"}}})}};
  record.at = "2026-05-01T10:00:00Z";
  return record;
}

void set_time(Record& record, double area, double time_ms) {
  const double flops = 4 * area * 64 * 128 * (record.c.pass == Pass::forward ? 1 : 2.5);
  const double tensors = static_cast<double>(record.c.tokens) * (128 + 2 * record.c.heads_k) * 256;
  record.metrics = {{"time_ms", time_ms}, {"time_ci_pct", 0.3}, {"tflops", flops / time_ms * 1e-9},
                    {"area", area},       {"plan_ms", 0.8},     {"peak_bytes", tensors},
                    {"error_o", 2.1e-3}};
  record.samples_ms = {time_ms};
}

double dense_ms(std::int64_t tokens, Pass pass) {
  const auto n = static_cast<double>(tokens);
  return 4 * n * n * 64 * 128 * (pass == Pass::forward ? 1 : 2.5) / kDenseTflops * 1e-9;
}

Record dense_record(const char* kernel, std::int64_t tokens, int heads_k, Pass pass,
                    double slower) {
  Record record = make_record(kernel, "full", tokens, heads_k, pass);
  record.c = canonical(record.c);
  const auto n = static_cast<double>(tokens);
  set_time(record, n * n, dense_ms(tokens, pass) * slower);
  return record;
}

Record sparse_record(const SparseKernel& kernel, double density, std::int64_t block,
                     std::int64_t tokens, int heads_k, Pass pass) {
  Record record = make_record(kernel.name, "block_sparse", tokens, heads_k, pass);
  record.c.density = density;
  record.c.block = block;
  record.c.block_heads = "kv";
  record.c = canonical(record.c);
  const auto n = static_cast<double>(tokens);
  const double factor = block == 64 ? 1.04 : 1;
  set_time(record, density * n * n,
           dense_ms(tokens, pass) * (kernel.start + factor * kernel.slope * density));
  record.metrics["peak_bytes"] += 2e8 * density;
  return record;
}

void stop_with(Record& record, StatusCode code, std::string reason) {
  record.status = {code, std::move(reason)};
  record.metrics.clear();
  record.samples_ms.clear();
  record.stop.clear();
}

}  // namespace

std::vector<Record> joined(std::vector<Record> records, const std::vector<Record>& others) {
  records.insert(records.end(), others.begin(), others.end());
  return records;
}

std::vector<Record> sparse_records() {
  std::vector<Record> records;
  for (const int heads_k : {8, 64}) {
    for (const std::int64_t tokens : {32768, 65536}) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        if (heads_k == 8 || tokens == 32768) {
          records.push_back(dense_record("cudnn", tokens, heads_k, pass, 1.2));
          records.push_back(dense_record("fa3", tokens, heads_k, pass, 1));
        }
        for (const std::int64_t block : {64, 128}) {
          for (const double density : {0.2, 0.5, 0.8}) {
            for (const SparseKernel& kernel : kKernels) {
              Record record = sparse_record(kernel, density, block, tokens, heads_k, pass);
              const bool is_vsa = std::string("vsa") == kernel.name;
              if (is_vsa && (heads_k != 64 || block != 64)) {
                stop_with(record, StatusCode::unsupported, "vsa takes blocks of 64, no GQA");
              } else if (std::string("flex") == kernel.name && density == 0.8 && heads_k == 64) {
                stop_with(record, StatusCode::oom, "needs 256 GiB, 139 GiB are available");
              }
              records.push_back(std::move(record));
            }
          }
        }
      }
    }
  }
  return records;
}

std::vector<Record> selected_records() {
  std::vector<Record> records;
  for (const double density : {0.1, 0.2, 0.5}) {
    for (const SparseKernel& kernel : {kKernels[0], kKernels[2]}) {
      Record record = sparse_record(kernel, density, 64, 32768, 8, Pass::forward);
      record.c.selection = "scores";
      auto& metrics = record.metrics;
      metrics["selection_ms"] = kSelectionMs;
      metrics["end_to_end_ms"] = kSelectionMs + metrics["plan_ms"] + metrics["time_ms"];
      metrics["kept_mass"] = 1 - 0.04 / density;
      metrics["error_full"] = 0.03 / density;
      records.push_back(std::move(record));
    }
  }
  return records;
}

}  // namespace longca::testing
