#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace longca::testing {

/// Digests of one case, one per column of its file; a case that is not supported has 0.
struct GoldenCase {
  std::string name;  ///< words, none of which looks like a digest
  std::vector<std::uint64_t> digests;
};

/// Expects the cases to equal the file tests/golden/plans/NAME, and names those that differ. With
/// LONGCA_UPDATE_GOLDEN=1 in the environment the file is rewritten instead. `columns` names the
/// digests of a line.
void expect_golden_digests(const std::string& name, const std::vector<std::string>& columns,
                           const std::vector<GoldenCase>& cases);

/// Whether LONGCA_GOLDEN_FULL=1 asks for all cases, which takes minutes.
bool golden_full();

}  // namespace longca::testing
