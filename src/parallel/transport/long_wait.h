#pragma once

#include <chrono>

namespace longca {

/// A wait for other ranks that lasts longer is reported.
inline constexpr std::chrono::milliseconds kLongWait{500};

}  // namespace longca
