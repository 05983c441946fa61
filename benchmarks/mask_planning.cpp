// How long planning takes on one core, from a mask's name to the runs of its tiles. The bound is 10
// ms for any static mask of 768K tokens. Documents come from prolong64k, which gives more of them
// (708) than the other distributions do at that length and seed.
#include <benchmark/benchmark.h>

#include "mask/generators.h"
#include "mask/tiles.h"
#include "register_all.h"

namespace longca {
namespace {

constexpr std::int64_t kTokens = 768 * 1024;
constexpr std::int64_t kSparseTokens = 128 * 1024;
constexpr std::int64_t kTile = 128;

MaskSpec spec_of(const MaskTraits& traits) {
  MaskSpec spec;
  spec.name = traits.name;
  spec.tokens = traits.uses_blocks ? kSparseTokens : kTokens;
  spec.lengths = "prolong64k";
  spec.heads_q = 64;
  spec.heads_k = 8;
  spec.block = 64;
  return spec;
}

/// Draws, checks and indexes the mask.
void generate(benchmark::State& state, const MaskSpec& spec) {
  for (auto _ : state) benchmark::DoNotOptimize(generate_mask(spec));
  state.counters["slices"] = static_cast<double>(generate_mask(spec).mask.slices().size());
}

void tiles(benchmark::State& state, const MaskSpec& spec) {
  const Mask mask = generate_mask(spec).mask;
  for (auto _ : state) benchmark::DoNotOptimize(tile_runs(mask, 0, kTile, kTile));
  state.counters["runs"] = static_cast<double>(tile_runs(mask, 0, kTile, kTile).runs.size());
}

void transposed_tiles(benchmark::State& state, const MaskSpec& spec) {
  const Mask mask = generate_mask(spec).mask;
  for (auto _ : state) benchmark::DoNotOptimize(transposed_tile_runs(mask, 0, kTile, kTile));
}

/// What the bound is about: both.
void plan(benchmark::State& state, const MaskSpec& spec) {
  for (auto _ : state) {
    const GeneratedMask generated = generate_mask(spec);
    benchmark::DoNotOptimize(tile_runs(generated.mask, 0, kTile, kTile));
  }
}

}  // namespace

void register_all() {
  using Function = void (*)(benchmark::State&, const MaskSpec&);
  const std::pair<const char*, Function> kinds[] = {{"generate", generate},
                                                    {"tiles", tiles},
                                                    {"transposed_tiles", transposed_tiles},
                                                    {"plan", plan}};
  for (const MaskTraits& traits : mask_table()) {
    for (const auto& [kind, function] : kinds) {
      benchmark::RegisterBenchmark((traits.name + "/" + kind).c_str(), function, spec_of(traits))
          ->Unit(benchmark::kMillisecond);
    }
  }
}

}  // namespace longca
