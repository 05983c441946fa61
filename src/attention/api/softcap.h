#pragma once

namespace longca {

/// Limits of a Problem::softcap that is not 0: far beyond what models have, and within what float32
/// keeps.
inline constexpr double kMinSoftcap = 1e-3;
inline constexpr double kMaxSoftcap = 1e6;

}  // namespace longca
