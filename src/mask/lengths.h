#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/python_random.h"

namespace longca {

/// Names of the length distributions, the "+long" variants included.
std::span<const std::string> length_distribution_names();
/// One line about a distribution: where its figures come from, mean and median length.
std::string describe_length_distribution(const std::string& name);

/// Document lengths that fill `tokens`, drawn as the published LongCA-bench draws them (T. Bu et
/// al., "Long-Context Attention Benchmark: From Kernel Efficiency to Distributed Context
/// Parallelism", arXiv:2510.17896, 2025; its figures are in configs/length_distributions.csv): a
/// bin by random.choices, a length by random.randint inside the bin, cut to what remains, at
/// least 1. "DIST+long": documents from DIST for int(0.4 · tokens), randint(8192, 30720) for the
/// rest, shuffled. Throws InputError for an unknown name (nearest suggested) or tokens < 0.
std::vector<std::int64_t> sample_lengths(const std::string& distribution, std::int64_t tokens,
                                         PythonRandom& random);

}  // namespace longca
