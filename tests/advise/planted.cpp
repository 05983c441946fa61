#include "planted.h"

#include <nlohmann/json.hpp>

#include "advise/work.h"
#include "bench/suite/axes.h"

namespace longca::advise::testing {

Case case_of(const std::string& kernel, const std::string& mask, std::int64_t tokens, Pass pass) {
  Case c;
  c.kernel = kernel;
  c.mask = mask;
  c.tokens = tokens;
  c.heads_q = 64;
  c.heads_k = 8;
  c.pass = pass;
  c.lengths = "prolong64k";
  c.device = "cuda";
  c.block_tokens = 1024;
  return canonical(c);
}

double law_ms(const Case& c, double per_full_tile, double per_partial_tile) {
  static MaskFacts masks;
  const Work& work = masks.work(c);
  const double pass = c.pass == Pass::backward ? 2.5 : 1;
  return pass * (0.02 + per_full_tile * work.tiles.full + per_partial_tile * work.tiles.partial);
}

Record record_of(const Case& c, double time_ms, double peak_bytes, const std::string& card) {
  Record record;
  record.c = c;
  record.metrics = {{"time_ms", time_ms}, {"time_ci_pct", 0.2}, {"peak_bytes", peak_bytes}};
  record.env = {{"gpus", {{{"model", card}, {"memory_bytes", 150e9}}}}};
  record.at = "2026-01-01T00:00:00Z";
  return record;
}

Record failed_record(const Case& c, StatusCode code, const std::string& reason) {
  Record record = record_of(c, 1);
  record.metrics.clear();
  record.status = {code, reason};
  return record;
}

std::vector<Record> planted_records() {
  std::vector<Record> records;
  for (const char* mask :
       {"full", "causal", "sliding_window_causal", "causal_document", "prefix_lm_causal"}) {
    for (const std::int64_t tokens : {1024, 2048, 4096, 8192, 16384}) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        for (const char* kernel : {"slice", "flex"}) {
          const Case c = case_of(kernel, mask, tokens, pass);
          const double factor = c.kernel == "flex" ? 1.5 : 1;
          const double bytes = 1e5 * static_cast<double>(tokens);
          records.push_back(record_of(c, factor * law_ms(c, 4e-5, 5e-5), bytes));
        }
      }
    }
  }
  return records;
}

Evidence evidence_of(const std::vector<Record>& records) {
  const RecordSource source{"planted.jsonl", records};
  return {std::span(&source, 1), Card{"cuda", kCard}};
}

}  // namespace longca::advise::testing
