#pragma once

#include <cstdint>

namespace longca {

/// What documents are dealt to positions for, besides few cuts.
enum class DealAim : std::uint8_t {
  equal_area,  ///< all compute as many cells: CPUs, where computing takes nearly all the time
  equal_time   ///< all end together: where those that wait for keys had better compute less
};

}  // namespace longca
