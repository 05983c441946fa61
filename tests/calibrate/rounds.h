#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/fit_platform.h"
#include "simulate/kernel_times.h"

// Rounds of a machine whose rates are known.

namespace longca::calibrate {

inline Machine test_gpu() {
  return {.kind = DeviceKind::cuda,
          .card = "NVIDIA H100 80GB HBM3",
          .sms = 132,
          .cache_bytes = 52428800,
          .devices = 1,
          .date = "2026-11-23"};
}

inline Machine test_cpu() {
  return {.kind = DeviceKind::cpu,
          .card = "AMD EPYC 9R14",
          .sms = 2,
          .cache_bytes = 33554432,
          .devices = 2,
          .date = "2026-11-23"};
}

inline Record test_cell(const std::string& kernel, const std::string& mask, std::int64_t tokens,
                        Pass pass, double area, double seconds) {
  Record record;
  record.c.kernel = kernel;
  record.c.mask = mask;
  record.c.tokens = tokens;
  record.c.heads_q = 64;
  record.c.heads_k = 8;
  record.c.pass = pass;
  record.c.device = "cuda";
  record.metrics = {{"area", area}, {"time_ms", seconds * 1e3}};
  return record;
}

/// Cells of a kernel that has these rates in both passes.
inline std::vector<Record> test_cells(const std::string& kernel, const simulate::CallRate& rate) {
  std::vector<Record> records;
  for (const std::int64_t tokens : {1024, 4096, 16384}) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const auto rows = static_cast<double>(tokens);
      const double full = rows * rows;
      const double causal = rows * (rows + 1) / 2;
      const cost::Pass priced = pass == Pass::forward ? cost::Pass::forward : cost::Pass::backward;
      const auto seconds = [&](double area) { return rate.seconds(area, rows, 64, 128, priced); };
      records.push_back(test_cell(kernel, "full", tokens, pass, full, seconds(full)));
      records.push_back(test_cell(kernel, "causal", tokens, pass, causal, seconds(causal)));
    }
  }
  return records;
}

inline constexpr LinkFigures kTestLinks{350e9, 8e-6, 5e-6, 20e-6};

/// Exchanges among ranks whose links have these figures.
inline std::vector<ExchangeTime> test_exchanges(const std::string& transport,
                                                const LinkFigures& links, int ranks) {
  std::vector<ExchangeTime> times;
  for (const TimedExchange& exchange :
       standard_exchanges(transport, DeviceKind::cuda, std::int64_t{80} << 30)) {
    const int peers = exchange.shape == ExchangeShape::ring ? 1 : ranks - 1;
    const double one = static_cast<double>(exchange.bytes) / links.bytes_per_second +
                       links.seconds_per_exchange +
                       (peers * exchange.messages - 1) * links.seconds_per_message;
    times.push_back({exchange, (exchange.exchanges * one + links.seconds_to_begin) * 1e3});
  }
  return times;
}

/// `factor`: on all times.
inline Round test_round(double factor, const std::vector<Record>& records) {
  const auto burst = MeasureMode::burst;
  Round round;
  round.probes = {{{ProbeWhat::copy, 65536, burst}, 2e-3 * factor},
                  {{ProbeWhat::copy, 1'000'000'000, burst}, 1 * factor},
                  {{ProbeWhat::product, 1000, burst}, 0.01 * factor},
                  {{ProbeWhat::product, 1000, MeasureMode::sustained}, 0.0125 * factor},
                  {{ProbeWhat::launch, 1, burst}, 3e-3 * factor},
                  {{ProbeWhat::launch, 65, burst}, 99e-3 * factor}};
  round.records = records;
  for (Record& record : round.records) record.metrics["time_ms"] *= factor;
  return round;
}

inline std::vector<Round> test_rounds(const std::vector<Record>& records) {
  return {test_round(1, records), test_round(1.02, records), test_round(0.99, records)};
}

inline constexpr simulate::CallRate kTestRate{600e12, 200, 20e-6};

inline cost::Platform test_platform() {
  return fit_platform(cost::default_platform(), test_gpu(),
                      test_rounds(test_cells("cudnn", kTestRate)), "mine");
}

/// Of two GPUs, whose `peer` has kTestLinks; `nccl` has half of the rate.
inline cost::Platform test_platform_of_links() {
  LinkFigures slower = kTestLinks;
  slower.bytes_per_second /= 2;
  std::vector<Round> rounds = test_rounds(test_cells("cudnn", kTestRate));
  const std::vector<double> factors = {1, 1.02, 0.99};
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    for (const auto& [transport, links] : {std::pair{"nccl", slower}, {"peer", kTestLinks}}) {
      for (ExchangeTime& time : test_exchanges(transport, links, 2)) {
        time.ms *= factors[i];
        rounds[i].exchanges.push_back(time);
      }
    }
  }
  Machine machine = test_gpu();
  machine.devices = machine.ranks = 2;
  return fit_platform(cost::default_platform(), machine, rounds, "mine");
}

}  // namespace longca::calibrate
