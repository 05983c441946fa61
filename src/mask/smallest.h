#pragma once

#include <cstdint>
#include <span>

namespace longca {

/// Writes the indices of the `kept` smallest of `numbers`, ascending, to the front of `indices`;
/// ties go to the earlier number. 1 ≤ kept ≤ numbers.size() ≤ indices.size(); the rest of `indices`
/// is scratch. Correct for any numbers, fast for uniformly distributed ones.
void indices_of_smallest(std::span<const std::uint32_t> numbers, std::int64_t kept,
                         std::span<std::int32_t> indices);

}  // namespace longca
