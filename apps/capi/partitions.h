#pragma once

#include <optional>
#include <vector>

#include "longca.h"
#include "parallel/partition/sharding_cache.h"
#include "parallel/schemes/build/grid.h"
#include "parallel/schemes/scheme.h"

struct longca_partition {
  longca::ShardingCache shardings;   ///< what depends on the mask and the ranks alone is made once
  longca::ParallelProblem parallel;  ///< with the shape that the partition was made for
  const longca::Scheme* scheme;
  int rank;
  std::optional<longca::Grid> grid;  ///< set once the scheme supports the problem
  /// Of the rank: global numbers, ascending. Kept, since longca_partition_ranges may not fail.
  std::vector<longca::Range> tokens;
};

namespace longca::capi {

/// Throws LONGCA_UNSUPPORTED with the scheme's reason.
void check_supported(const longca_partition& p, const ParallelProblem& parallel);

}  // namespace longca::capi
