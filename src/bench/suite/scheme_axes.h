#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/suite/case.h"
#include "mask/generators.h"
#include "parallel/schemes/scheme.h"

namespace longca {

/// Values of the axis `shard` that stand for a kind of sharding: the one that the scheme's authors
/// publish, and the one that is best here.
inline constexpr std::string_view kPublishedShard = "published";
inline constexpr std::string_view kBestShard = "best";

/// All schemes, in the order of the tables.
std::vector<std::string> scheme_names();

/// All values of the axis `shard`: the kinds, published, best.
std::vector<std::string> shard_names();

/// All values of the axis `transport`.
std::vector<std::string> transport_names();

/// Whether the case's transport carries messages between devices of its kind.
Support check_transport(const Case& c);

/// Writes out what a case leaves to its scheme: the kind of sharding (published if there is none),
/// the factor (removed where the scheme has none, else its choice for such nodes) and the device's
/// transport (mpi, or peer between GPUs). Throws InputError for an unknown scheme.
void fill_in_scheme(Case& c, int ranks_per_node);

/// A case as its scheme sees it. The case is canonical and has a scheme; `generated` is its mask.
ParallelProblem parallel_problem(const Case& c, const GeneratedMask& generated, int ranks_per_node);

}  // namespace longca
