#include "report/sample_records.h"

#include <stdexcept>

#include "bench/suite/axes.h"

namespace longca::testing {
namespace {

constexpr std::int64_t kSeed = 42;

struct SampleKernel {
  const char* name;
  double tflops;
  double bytes_per_token;
};
constexpr SampleKernel kNaive = {"naive", 0.0113, 1.1e6};
constexpr SampleKernel kFlash = {"flash", 0.1734, 4.2e4};
constexpr SampleKernel kSparse = {"block_sparse", 0.1621, 4.4e4};

/// A figure in [0.85, 1] that depends on the case only.
double wobble(const Case& c) {
  std::uint32_t hash = 2166136261U;
  for (const char letter : c.key()) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return 0.85 + 0.15 * (hash % 1000) / 1000.0;
}

Case make_case(const SampleKernel& kernel, const std::string& mask, std::int64_t tokens,
               Pass pass) {
  Case c;
  c.kernel = kernel.name;
  c.mask = mask;
  c.tokens = tokens;
  c.heads_q = 8;
  c.heads_k = 2;
  c.dtype = DType::float32;
  c.pass = pass;
  c.seed = kSeed;
  const MaskTraits& traits = mask_traits(mask);
  if (traits.uses_lengths) c.lengths = "prolong64k";
  if (traits.uses_window) c.window = 256;
  if (traits.uses_block_tokens) c.block_tokens = 128;
  if (traits.uses_blocks) {
    c.density = 0.5;
    c.block = 64;
    c.block_heads = "kv";
  }
  return canonical(c);
}

Record make_record(const SampleKernel& kernel, const std::string& mask, std::int64_t tokens,
                   Pass pass) {
  Record record;
  record.c = make_case(kernel, mask, tokens, pass);
  const double area = 0.5 * static_cast<double>(tokens) * static_cast<double>(tokens);
  const double flops = 4 * area * 8 * 128 * (pass == Pass::forward ? 1 : 2.5);
  const double tflops = kernel.tflops * wobble(record.c);
  const double time_ms = flops / tflops * 1e-9;
  record.metrics = {{"time_ms", time_ms},
                    {"time_ci_pct", 0.4},
                    {"tflops", tflops},
                    {"area", area},
                    {"plan_ms", 0.0213},
                    {"peak_bytes", kernel.bytes_per_token * static_cast<double>(tokens)},
                    {"workspace_bytes", 65536},
                    {"verified_fraction", 1}};
  if (pass == Pass::forward) {
    record.metrics["error_o"] = 2.1e-7;
    record.metrics["error_lse"] = 4.8e-7;
  } else {
    for (const char* name : {"error_dq", "error_dk", "error_dv"}) record.metrics[name] = 3.4e-7;
  }
  record.samples_ms = {time_ms * 1.01, time_ms, time_ms * 0.99};
  record.stop = "converged";
  record.env = {{"version", "0.1.0"},
                {"commit", "0123456789ab"},
                {"compiler", "GNU 12.2.0"},
                {"cpu", {{"model", "Example CPU 9000"}, {"cores_usable", 2}}},
                {"gpus", nlohmann::json::array()},
                {"argv", {"longca", "bench"}}};
  record.at = pass == Pass::forward ? "2026-05-01T10:00:00Z" : "2026-05-01T10:02:00Z";
  return record;
}

void stop_with(Record& record, StatusCode code, std::string reason) {
  record.status = {code, std::move(reason)};
  record.metrics.clear();
  record.samples_ms.clear();
  record.stop.clear();
}

Record& find(std::vector<Record>& records, const char* kernel, const char* mask,
             std::int64_t tokens, Pass pass) {
  for (Record& record : records) {
    if (record.c.kernel == kernel && record.c.mask == mask && record.c.tokens == tokens &&
        record.c.pass == pass) {
      return record;
    }
  }
  throw std::logic_error("no such sample record");
}

}  // namespace

std::vector<Record> sample_records() {
  std::vector<Record> records;
  for (const char* mask : {"full", "sliding_window_causal", "causal_document", "block_sparse"}) {
    for (const std::int64_t tokens : {1024, 4096}) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        for (const SampleKernel& kernel : {kNaive, kFlash, kSparse}) {
          records.push_back(make_record(kernel, mask, tokens, pass));
          if (kernel.name == std::string("block_sparse") && mask != std::string("block_sparse")) {
            stop_with(records.back(), StatusCode::unsupported,
                      "block_sparse needs a mask with block lists");
          }
        }
      }
    }
  }
  stop_with(find(records, "naive", "full", 4096, Pass::backward), StatusCode::oom,
            "needs 12.5 GiB, 8.0 GiB are available");
  stop_with(find(records, "naive", "causal_document", 4096, Pass::forward), StatusCode::timeout,
            "did not end within 10 s");
  stop_with(find(records, "naive", "block_sparse", 4096, Pass::forward), StatusCode::crash,
            kHostileText);
  stop_with(find(records, "naive", "sliding_window_causal", 1024, Pass::backward),
            StatusCode::unavailable, "install the package \"example\"");
  Record& wrong = find(records, "flash", "block_sparse", 1024, Pass::backward);
  stop_with(wrong, StatusCode::wrong, "dK of head 3, row 17 is off by 0.5");
  wrong.metrics["error_dk"] = 0.021;
  Record& unsettled = find(records, "flash", "full", 4096, Pass::backward);
  unsettled.stop = "time_limit";
  unsettled.metrics["time_ci_pct"] = 1.7;
  unsettled.notes["lse"] = "not returned";
  return records;
}

std::vector<Record> all_mask_records() {
  std::vector<Record> records;
  for (const MaskTraits& mask : mask_table()) {
    for (const SampleKernel& kernel : {kNaive, kFlash, kSparse}) {
      if (kernel.name == std::string("block_sparse") && !mask.uses_blocks) continue;
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        records.push_back(make_record(kernel, mask.name, 2048, pass));
      }
    }
  }
  return records;
}

std::vector<Record> traced_records() {
  std::vector<Record> records;
  for (const char* mask : {"full", "causal"}) {
    records.push_back(make_record(kFlash, mask, 4096, Pass::forward));
    records.back().trace = DeviceTrace{
        .t_ms = {0, 20, 40}, .sm_clock_mhz = {1980, 1905, 1890}, .power_w = {350.4, 610, 640}};
  }
  records.back().notes["throttled"] = "power cap";
  records.push_back(make_record(kNaive, "causal", 4096, Pass::forward));
  return records;
}

namespace {

struct SampleScheme {
  const char* name;
  const char* shard;
  double speed;  ///< of one device's, at two ranks
};

/// A rank's cells of the shape that make_record makes.
Record make_rank_record(const SampleScheme& scheme, const std::string& mask, int ranks, Pass pass) {
  Record record = make_record(kFlash, mask, 1024 * ranks, pass);
  record.c.scheme = scheme.name;
  record.c.ranks = ranks;
  record.c.shard = scheme.shard;
  record.c.device = "cuda";
  record.c = canonical(record.c);
  auto& metrics = record.metrics;
  const double loss = ranks == 1 ? 1 : scheme.speed - 0.01 * ranks;
  metrics["tflops"] = 500 * loss * (pass == Pass::forward ? 1 : 0.8);
  metrics["time_ms"] = 2.0 * ranks / metrics["tflops"] * 100;
  metrics["compute_ms"] = metrics["time_ms"] * (ranks == 1 ? 1.001 : 0.9);
  metrics["exposed_comm_ms"] = metrics["time_ms"] - metrics["compute_ms"];
  const double bytes = 1048576.0 * (ranks - 1) / ranks * (pass == Pass::forward ? 2 : 4);
  metrics["bytes_sent"] = metrics["bytes_formula"] = bytes;
  metrics["bytes_least"] = bytes / 2;
  metrics["imbalance"] = ranks == 1 ? 1 : 1.02;
  metrics["time_imbalance"] = ranks == 1 ? 1 : 1.05;
  metrics["padding_tokens"] = 0;
  for (auto& [name, value] : metrics) {
    if (name.starts_with("error_")) value *= 1 + 0.1 * ranks;
  }
  record.rank_times_ms.assign(static_cast<std::size_t>(ranks), metrics["time_ms"]);
  return record;
}

Record& find_rank_cell(std::vector<Record>& records, const char* scheme, const char* mask,
                       int ranks, Pass pass) {
  for (Record& record : records) {
    if (record.c.scheme == scheme && record.c.mask == mask && record.c.ranks == ranks &&
        record.c.pass == pass) {
      return record;
    }
  }
  throw std::logic_error("no such sample record over ranks");
}

}  // namespace

std::vector<Record> over_ranks_records() {
  std::vector<Record> records;
  for (const int ranks : {1, 2, 4}) {
    for (const char* mask : {"full", "causal_document"}) {
      for (const SampleScheme& scheme :
           {SampleScheme{"ulysses", "contiguous", 0.97}, SampleScheme{"ring_p2p", "zigzag", 0.93},
            SampleScheme{"ring_p2p", "balanced", 0.91}, SampleScheme{"usp", "zigzag", 0.95}}) {
        for (const Pass pass : {Pass::forward, Pass::backward}) {
          records.push_back(make_rank_record(scheme, mask, ranks, pass));
          if (ranks == 4 && std::string("ulysses") == scheme.name) {
            stop_with(records.back(), StatusCode::unsupported,
                      "ulysses shares out 2 query heads: at most 2 ranks");
            records.back().rank_times_ms.clear();
          }
        }
      }
    }
  }
  stop_with(find_rank_cell(records, "usp", "full", 4, Pass::backward), StatusCode::crash,
            "rank 3 ended: killed by signal 9");
  Record& padded = find_rank_cell(records, "ring_p2p", "causal_document", 4, Pass::forward);
  padded.metrics["bytes_sent"] += 8192;
  padded.metrics["padding_tokens"] = 16;
  return records;
}

std::vector<Record> two_kernels_records() {
  std::vector<Record> records;
  for (Record record : over_ranks_records()) {
    if (record.c.ranks != 2 || record.c.shard == "balanced") continue;
    record.c.kernel = "naive";
    records.push_back(record);
    if (record.c.scheme == "usp") {
      record.c.transport = "nccl";
      records.push_back(record);
      record.c.transport = "peer";
    }
    record.c.kernel = "flash";
    if (record.c.mask == "causal_document") {
      stop_with(record, StatusCode::unsupported, "flash takes masks of slices only");
    }
    records.push_back(record);
  }
  return records;
}

std::vector<Record> one_device_records() {
  std::vector<Record> records;
  for (const int ranks : {1, 2, 4}) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      Record record = make_record(kFlash, "full", 1024 * ranks, pass);
      record.c.device = "cuda";
      record.metrics["tflops"] = pass == Pass::forward ? 510 : 405;
      record.metrics["time_ms"] = 2.0 * ranks * ranks / record.metrics["tflops"] * 100;
      records.push_back(record);
    }
  }
  return records;
}

std::vector<Record> hostile_records() {
  std::vector<Record> records = sample_records();
  for (Record& record : records) {
    if (record.c.kernel == "naive") record.c.kernel = kHostileText;
    record.c.mode = record.c.tokens == 1024 ? kHostileText : "burst";
    record.status.reason = kHostileText;
    record.notes["note"] = kHostileText;
    record.at = kHostileText;
    record.env = {{"cpu", {{"model", kHostileText}}}, {kHostileText, kHostileText}};
  }
  records[0].c.mask = kHostileText;
  std::vector<Record> over_ranks = over_ranks_records();
  for (Record& record : over_ranks) {
    if (record.c.ranks != 2) continue;
    record.c.scheme = record.c.shard = record.c.transport = kHostileText;
    record.notes["note"] = kHostileText;
  }
  records.insert(records.begin(), over_ranks.begin(), over_ranks.end());
  return records;
}

}  // namespace longca::testing
