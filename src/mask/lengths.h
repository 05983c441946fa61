#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/python_random.h"

namespace longca {

/// Names of the length distributions, the "+long" variants included.
std::span<const std::string> length_distribution_names();
/// One line about a distribution: its origin, mean and median length.
std::string describe_length_distribution(const std::string& name);

/// Document lengths that fill `tokens`, drawn exactly as the published LongCA-bench does (T. Bu et
/// al., "Long-Context Attention Benchmark: From Kernel Efficiency to Distributed Context
/// Parallelism", arXiv:2510.17896, 2025; its histograms are in configs/length_distributions.csv):
/// random.choices draws a bin, random.randint a length in it, which is cut to the remaining tokens
/// and at least 1. "DIST+long" draws int(0.4 · tokens) tokens from DIST, the rest in documents of
/// randint(8192, 30720) tokens, and shuffles all. For the name of lengths of the user's own, draws
/// nothing and gives their first_documents (own_lengths.h). Throws InputError for an unknown name
/// (with the nearest one), tokens < 0, or too few documents of the user's own.
std::vector<std::int64_t> sample_lengths(const std::string& distribution, std::int64_t tokens,
                                         PythonRandom& random);

/// The text of configs/length_distributions.csv, compiled in. Columns: distribution, low, high
/// (tokens, both ends included), weight (relative, any sum).
extern const std::string_view kLengthDistributionsCsv;

}  // namespace longca
