#pragma once

#include <string_view>

namespace longca {

/// The text of configs/length_distributions.csv, put into the program when it is built. The figures
/// are those of LongCA-bench (T. Bu et al., "Long-Context Attention Benchmark: From Kernel
/// Efficiency to Distributed Context Parallelism", arXiv:2510.17896, 2025;
/// github.com/NJUDeepEngine/LongCA-bench). Columns: distribution, low, high (tokens, both ends
/// included), weight (relative, any sum).
extern const std::string_view kLengthDistributionsCsv;

}  // namespace longca
