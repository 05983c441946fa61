// How long `slice` takes to plan a mask on one core: the choice of the pack, and the lists for it,
// of both passes, and of gradients in a fixed order.
// The bound is 5 ms, of what is planned in any order, for any static mask of 768K tokens with 8
// query heads per KV head. Documents come from prolong64k, which gives more of them (708) than the
// other distributions do at that length and seed.
#include <benchmark/benchmark.h>

#include <string>

#include "attention/kernels/slice/planner/pack.h"
#include "attention/kernels/slice/planner/tile_lists.h"
#include "attention/kernels/slice/planner/tile_starts.h"
#include "attention/kernels/slice/planner/transposed_lists.h"
#include "mask/generators.h"
#include "register_all.h"

namespace longca {
namespace {

constexpr std::int64_t kTokens = 768 * 1024;
constexpr std::int64_t kSparseTokens = 32 * 1024;
constexpr int kGroupSize = 8;
constexpr int kHeadDim = 128;

Mask mask_of(const std::string& name) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = mask_traits(name).uses_blocks ? kSparseTokens : kTokens;
  spec.heads_q = 64;
  spec.heads_k = 64 / kGroupSize;
  spec.block = 64;
  return generate_mask(spec).mask;
}

void choose(benchmark::State& state, const std::string& name) {
  const Mask mask = mask_of(name);
  for (auto _ : state) benchmark::DoNotOptimize(slice::choose_pack(mask, kGroupSize, kHeadDim));
  state.counters["pack"] = slice::choose_pack(mask, kGroupSize, kHeadDim);
}

void make_lists(const Mask& mask, const slice::Tiling& tiling) {
  const slice::TileLists lists = slice::make_tile_lists(mask, tiling);
  if (lists.list_heads == 1) benchmark::DoNotOptimize(slice::make_tile_starts(lists));
}

/// What a plan of the forward pass does on the host.
void plan(benchmark::State& state, const std::string& name) {
  const Mask mask = mask_of(name);
  for (auto _ : state) {
    const slice::Tiling tiling = slice::choose_tiling(mask, kGroupSize, kHeadDim);
    make_lists(mask, tiling);
    state.counters["pack"] = tiling.pack;
    state.counters["row_pairs"] = tiling.row_pairs ? 1 : 0;
  }
}

void list(benchmark::State& state, const std::string& name, slice::Tiling tiling) {
  const Mask mask = mask_of(name);
  for (auto _ : state) benchmark::DoNotOptimize(slice::make_tile_lists(mask, tiling));
  const slice::TileLists lists = slice::make_tile_lists(mask, tiling);
  state.counters["partial"] = static_cast<double>(lists.partial.size());
  state.counters["patterns"] =
      static_cast<double>(lists.patterns.size()) / static_cast<double>(lists.tiling.group_tokens());
}

void choose_backward(benchmark::State& state, const std::string& name) {
  const Mask mask = mask_of(name);
  for (auto _ : state) {
    benchmark::DoNotOptimize(slice::choose_backward_pack(mask, kGroupSize));
  }
  state.counters["pack"] = slice::choose_backward_pack(mask, kGroupSize);
}

/// What a plan of the forward pass does where no query heads share a KV head.
void plan_alone(benchmark::State& state, const std::string& name) {
  const Mask mask = mask_of(name);
  for (auto _ : state) {
    const slice::Tiling tiling = slice::choose_tiling(mask, 1, kHeadDim);
    make_lists(mask, tiling);
    state.counters["row_pairs"] = tiling.row_pairs ? 1 : 0;
  }
}

void list_backward(benchmark::State& state, const std::string& name, int pack) {
  const Mask mask = mask_of(name);
  const slice::BackwardWork work = {.heads_q = 64, .heads_k = 64 / kGroupSize};
  for (auto _ : state) benchmark::DoNotOptimize(slice::make_transposed_lists(mask, pack, work));
  const slice::TransposedLists lists = slice::make_transposed_lists(mask, pack, work);
  state.counters["segments"] = static_cast<double>(lists.segments.size());
  state.counters["patterns"] = static_cast<double>(lists.patterns.size()) / slice::kTileKeys;
}

/// What a plan of the backward pass does where gradients are added up in a fixed order.
void plan_backward_ordered(benchmark::State& state, const std::string& name) {
  const Mask mask = mask_of(name);
  const slice::BackwardWork work = {.heads_q = 64, .heads_k = 64 / kGroupSize, .ordered = true};
  std::size_t segments = 0;
  for (auto _ : state) {
    const int pack = slice::choose_backward_pack(mask, kGroupSize);
    segments = slice::make_transposed_lists(mask, pack, work).segments.size();
  }
  state.counters["segments"] = static_cast<double>(segments);
}

}  // namespace

void register_all() {
  for (const MaskTraits& traits : mask_table()) {
    const std::string& name = traits.name;
    benchmark::RegisterBenchmark((name + "/choose").c_str(), choose, name)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark((name + "/plan").c_str(), plan, name)
        ->Unit(benchmark::kMillisecond);
    if (!traits.uses_blocks) {
      benchmark::RegisterBenchmark((name + "/plan_alone").c_str(), plan_alone, name)
          ->Unit(benchmark::kMillisecond);
    }
    benchmark::RegisterBenchmark((name + "/backward/choose").c_str(), choose_backward, name)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark((name + "/backward/ordered").c_str(), plan_backward_ordered, name)
        ->Unit(benchmark::kMillisecond);
    for (const int pack : {1, 8}) {
      benchmark::RegisterBenchmark((name + "/backward/pack" + std::to_string(pack)).c_str(),
                                   list_backward, name, pack)
          ->Unit(benchmark::kMillisecond);
    }
    for (const int pack : {1, 4}) {  // 8 would be beyond the limit of choose_pack
      benchmark::RegisterBenchmark((name + "/pack" + std::to_string(pack)).c_str(), list, name,
                                   slice::Tiling{pack})
          ->Unit(benchmark::kMillisecond);
    }
  }
}

}  // namespace longca
