// How long a rank takes to build its plan of context parallelism, sharding included: 1M tokens over
// 1024 ranks (as many as share the heads at most, where a scheme does nothing else), GQA 64:8, both
// passes, 8 ranks per node. The bound is 50 ms. Each scheme with the sharding of its authors and
// with its best one here; documents come from prolong64k.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>

#include "mask/generators.h"
#include "parallel/schemes/scheme.h"
#include "register_all.h"

namespace longca {
namespace {

constexpr std::int64_t kTokens = 1024 * 1024;
constexpr int kRanks = 1024;

ParallelProblem make_problem(const std::string& mask_name) {
  MaskSpec spec;
  spec.name = mask_name;
  spec.tokens = kTokens;
  spec.lengths = "prolong64k";
  GeneratedMask generated = generate_mask(spec);
  Problem problem;
  problem.tokens_q = problem.tokens_k = kTokens;
  problem.heads_q = 64;
  problem.heads_k = 8;
  problem.dtype = DType::bfloat16;
  problem.backward = true;
  return {problem,
          std::move(generated.mask),
          std::move(generated.lengths),
          kRanks,
          8,
          ShardKind::contiguous,
          0};
}

void build(benchmark::State& state, const Scheme& scheme, const ParallelProblem& problem) {
  int rank = problem.ranks / 3;
  for (auto _ : state) {
    benchmark::DoNotOptimize(scheme.plan(problem, rank));
    rank = (rank + 1) % problem.ranks;
  }
  const RankPlan plan = scheme.plan(problem, problem.ranks / 3);
  state.counters["ranks"] = problem.ranks;
  state.counters["ops"] = static_cast<double>(plan.forward.size() + plan.backward.size());
}

}  // namespace

void register_all() {
  for (const char* mask : {"full", "causal", "document", "causal_document", "causal_blockwise"}) {
    for (const auto& scheme : schemes()) {
      for (const bool best : {false, true}) {
        ParallelProblem problem = make_problem(mask);
        problem.shard = best ? scheme->best_shard() : scheme->published_shard();
        while (!scheme->supports(problem).ok()) problem.ranks /= 2;
        if (best && scheme->best_shard() == scheme->published_shard()) continue;
        const std::string name =
            fmt::format("{}/{}/{}", scheme->name(), mask, to_string(problem.shard));
        benchmark::RegisterBenchmark(name.c_str(), [&scheme, problem](benchmark::State& state) {
          build(state, *scheme, problem);
        })->Unit(benchmark::kMillisecond);
      }
    }
  }
}

}  // namespace longca
