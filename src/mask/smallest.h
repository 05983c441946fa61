#pragma once

#include <cstdint>
#include <span>

namespace longca {

/// Writes the places of the `kept` smallest of `numbers`, ascending; of equal numbers the earlier
/// ones count as smaller. 1 ≤ kept ≤ numbers.size() ≤ places.size(); what follows the first `kept`
/// of `places` is scratch. Fast for uniform numbers, right for any.
void places_of_smallest(std::span<const std::uint32_t> numbers, std::int64_t kept,
                        std::span<std::int32_t> places);

}  // namespace longca
