// What document_balanced makes of the problems of the suites, by the cost model: `end_us`, the
// estimated end of the last CP rank's backward pass, and the time to find the partition on one
// core. docs/design/context-parallel-plans.md tells what each rule of the search gains by end_us.
//
// Cells: those of configs/cp*.toml whose masks have documents, over 2 to 64 CP ranks, for equal
// time; and others ("more/…"), so that no rule is fitted to the suites' draws of documents alone.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "mask/generators.h"
#include "parallel/partition/partition_cost.h"
#include "parallel/partition/sharding.h"
#include "register_all.h"

namespace longca {
namespace {

struct Cell {
  std::string suite;
  MaskSpec mask;
  int cp_ranks = 1;
};

Cell make_cell(const std::string& suite, const std::string& mask, std::int64_t tokens,
               int cp_ranks) {
  Cell cell = {suite, {}, cp_ranks};
  cell.mask.name = mask;
  cell.mask.tokens = tokens;
  return cell;
}

std::vector<Cell> suite_cells() {
  const std::vector<std::string> masks = {"document",           "causal_document",
                                          "shared_question",    "causal_blockwise",
                                          "prefix_lm_document", "block_causal_document"};
  std::vector<Cell> cells;
  for (const std::string& mask : masks) {
    cells.push_back(make_cell("cp_quick", mask, 1000, 4));
    cells.back().mask.block_tokens = 100;
  }
  for (const int cp_ranks : {2, 4, 8, 16, 32, 64}) {
    const std::int64_t ranks = cp_ranks;
    for (const std::string& mask : masks) {
      cells.push_back(make_cell("cp", mask, 8192 * ranks, cp_ranks));
    }
    for (const char* mask : {"document", "causal_document"}) {
      cells.push_back(make_cell("cp_strong", mask, 131072, cp_ranks));
    }
    cells.push_back(make_cell("cp_tp8", "document", 65536 * ranks, cp_ranks));
    cells.back().mask.lengths = "chatqa_short";
  }
  return cells;
}

std::vector<Cell> more_cells() {
  std::vector<MaskSpec> draws(5);
  for (const std::size_t i : {0, 1, 2}) draws[i].seed = i + 1;
  draws[3].lengths = "pile";
  draws[4].lengths = "prolong64k+long";
  std::vector<Cell> cells;
  for (MaskSpec& draw : draws) {
    for (const char* mask : {"document", "causal_document"}) {
      for (const int cp_ranks : {2, 4, 8, 32}) {
        draw.name = mask;
        draw.tokens = std::int64_t{8192} * cp_ranks;
        cells.push_back({"more", draw, cp_ranks});
      }
    }
  }
  return cells;
}

void partition(benchmark::State& state, const Cell& cell) {
  const Mask mask = generate_mask(cell.mask).mask;
  const auto shard = [&] {
    return Sharding(ShardKind::document_balanced, mask, {}, cell.cp_ranks, 0,
                    PartitionAim::equal_time);
  };
  for (auto _ : state) benchmark::DoNotOptimize(shard());
  const Sharding sharding = shard();
  std::vector<std::vector<Range>> assigned;
  for (int p = 0; p < cell.cp_ranks; ++p) assigned.push_back(sharding.ranges(p));
  const PartitionCost cost(mask);
  state.counters["end_us"] = 1e6 * cost.times().price_of(cost.of(assigned));
  state.counters["imbalance"] = area_imbalance(mask, sharding);
}

void add(const std::vector<Cell>& cells) {
  for (const Cell& cell : cells) {
    const std::string name = fmt::format("{}/{}/{}/{}/{}", cell.suite, cell.mask.name,
                                         cell.mask.lengths, cell.mask.seed, cell.cp_ranks);
    benchmark::RegisterBenchmark(name.c_str(), partition, cell)->Unit(benchmark::kMillisecond);
  }
}

}  // namespace

void register_all() {
  add(suite_cells());
  add(more_cells());
}

}  // namespace longca
