#pragma once

#include <cstdint>

namespace longca {

/// Bytes of all data caches of level 2 and above that the CPUs of this process use, each counted
/// once, from /sys; 0 if that does not say. (sysconf adds up what other processors of the machine
/// have.)
std::int64_t cpu_cache_bytes();

/// Bytes to read so that neither the shared caches nor the cores' own ones keep anything older:
/// those of the caches, 64 MiB if they are unknown, at most 512 MiB.
std::int64_t cache_flush_bytes();

}  // namespace longca
