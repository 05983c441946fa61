#include "simulate/clocks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "simulate/engine.h"

namespace longca::simulate {
namespace {

constexpr int kMaxSteps = 8;
constexpr double kSettled = 1e-3;  ///< relative change of a rank's clock that ends the search

/// Seconds of a rank's ops that a lower clock does not make longer: passes over memory.
double memory_seconds(const RankWork& work, double factor) {
  double seconds = work.early_seconds;
  for (const TimedOp& op : work.ops) seconds += op.seconds - factor * op.cycle_seconds;
  return seconds;
}

/// Makes cycles take `factor` times as long as they took at `before` times.
void lengthen(RankWork& work, double before, double factor) {
  for (TimedOp& op : work.ops) op.seconds += (factor - before) * op.cycle_seconds;
}

}  // namespace

void settle_clocks(Program& program, const Cluster& cluster, const KernelTimes& kernel,
                   cost::Pass pass) {
  std::vector<double> factors(program.ranks.size(), 1);
  for (int step = 0; step < kMaxSteps; ++step) {
    const double period =
        run(program, cluster, Exchanges::run).end() + run(program, cluster, Exchanges::skip).end();
    if (period == 0) return;
    double change = 0;
    for (std::size_t rank = 0; rank < factors.size(); ++rank) {
      RankWork& work = program.ranks[rank];
      const double factor =
          kernel.sustained_slowdown(2 * factors[rank] * work.busy_seconds,
                                    2 * memory_seconds(work, factors[rank]), period, pass);
      change = std::max(change, std::abs(factor / factors[rank] - 1));
      lengthen(work, factors[rank], factor);
      factors[rank] = factor;
    }
    if (change < kSettled) return;
  }
}

}  // namespace longca::simulate
