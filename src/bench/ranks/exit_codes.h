#pragma once

namespace longca {

/// Exit codes of a rank.
inline constexpr int kRankRefused = 2;
inline constexpr int kRankFailed = 3;

}  // namespace longca
