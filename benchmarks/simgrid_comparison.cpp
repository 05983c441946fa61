#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <string>

#include "simulate/engine.h"
#include "simulate/lower.h"
#include "simulate/problems.h"
#include "simulate/simgrid_replay.h"

// What a backward pass costs in our event loop and in SimGrid:
//   simgrid_comparison ours|simgrid SCHEME MASK RANKS
// A process for each, so that the memory is that of one.
namespace longca::simulate {
namespace {

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void compare(bool ours, const Scheme& scheme, const std::string& mask, int ranks) {
  const Cluster cluster = load_cluster("h100x8_ib400");
  ParallelProblem problem = testing::problem_over(ranks, mask, 8192);
  ShardingCache shardings;
  problem.shardings = &shardings;
  problem.platform = &cluster.platform;
  problem.shard = scheme.best_shard();
  problem.factor = scheme.factor(problem);
  const SliceTimes slice(cluster.platform);
  const OpTimes times{&slice, &cluster.platform, 128, DType::bfloat16};
  std::vector<RankWork> works;
  for (int rank = 0; rank < ranks; ++rank) {
    works.push_back(lower(scheme.plan(problem, rank), true, times));
  }
  const Program program = link(std::move(works));
  const double before_mib = peak_mib();
  const std::clock_t begin = std::clock();
  double end = 0;
  if (ours) {
    end = run(program, cluster, Exchanges::run).end();
  } else {
    for (const auto& of_rank : testing::replay_with_simgrid(program, cluster, nullptr).ops) {
      for (const double op_end : of_rank) end = std::max(end, op_end);
    }
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  fmt::print("{} {} over {}, {}: {} messages end after {:.6f} ms; {:.3f} CPU s, {:.0f} MiB more\n",
             scheme.name(), mask, ranks, ours ? "ours" : "SimGrid", program.messages.size(),
             end * 1e3, seconds, peak_mib() - before_mib);
}

}  // namespace
}  // namespace longca::simulate

int main(int count, char** arguments) {
  if (count != 5) {
    fmt::print(stderr, "usage: simgrid_comparison ours|simgrid SCHEME MASK RANKS\n");
    return 2;
  }
  longca::simulate::compare(arguments[1] == std::string("ours"), longca::find_scheme(arguments[2]),
                            arguments[3], std::stoi(arguments[4]));
  return 0;
}
