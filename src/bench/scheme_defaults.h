#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/case.h"

namespace longca {

/// Values of the axis `shard` that stand for a kind of sharding: as the scheme's authors publish
/// it, and what is best here.
inline constexpr std::string_view kPublishedShard = "published";
inline constexpr std::string_view kBestShard = "best";

/// All schemes, in the order of the tables.
std::vector<std::string> scheme_names();

/// All values of the axis `shard`: the kinds, published, best.
std::vector<std::string> shard_names();

/// Writes out what a case with a scheme leaves to it: the kind of sharding (published if there is
/// none), the factor (removed where the scheme has none, else its choice for such nodes), and the
/// transport of the device (mpi, or peer between GPUs). Throws InputError for an unknown scheme.
void fill_in_scheme(Case& c, int ranks_per_node);

}  // namespace longca
