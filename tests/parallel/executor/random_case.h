#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "parallel/schemes/scheme.h"

namespace longca::test {

/// A problem of up to 8 ranks: random mask, length (also shorter than the ranks), documents, heads,
/// sharding, factor.
ParallelProblem random_case(const Scheme& scheme, std::mt19937& random);
/// For the trace of a test.
std::string describe(const ParallelProblem& problem);

}  // namespace longca::test
