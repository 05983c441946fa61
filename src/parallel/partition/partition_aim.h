#pragma once

#include <cstdint>

namespace longca {

/// What documents are assigned to CP ranks for, besides few cuts.
enum class PartitionAim : std::uint8_t {
  equal_area,  ///< all compute as many cells: CPUs, where computing takes nearly all the time
  equal_time   ///< all end together: where those that wait for keys had better compute less
};

}  // namespace longca
