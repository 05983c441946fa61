#pragma once

#include <cstdint>
#include <string>

namespace longca {

/// Bytes that a cell's processes may print: they are kept in RAM until the cell ends.
inline constexpr std::int64_t kMaxPrinted = std::int64_t{256} << 20;

/// Why a process must be ended: "passed the memory limit of 512 MiB"; empty if it need not. All
/// arguments in bytes; `slack`: what it may take beyond the limit.
std::string memory_excess(std::int64_t resident, std::int64_t printed, std::int64_t limit,
                          std::int64_t slack);

}  // namespace longca
