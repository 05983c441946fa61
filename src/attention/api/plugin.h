#pragma once

#include <cstdint>

#include "attention/api/kernel.h"
#include "attention/api/registry.h"

namespace longca {

/// Version of everything a plug-in sees: this header, kernel.h and what they include. Grows with
/// every change of theirs, so that a plug-in built for another version is refused, not called.
inline constexpr std::uint32_t kPluginVersion = 2;

/// What a plug-in tells of itself.
struct PluginInfo {
  std::uint32_t version = kPluginVersion;
  const char* name = "";  ///< for messages
  /// Adds the plug-in's kernels to the registry; may throw.
  void (*add_kernels)(KernelRegistry& registry) = nullptr;
};

}  // namespace longca

/// The one symbol that `--plugin FILE.so` looks for: a plug-in is a shared library that defines
/// `const longca::PluginInfo* longca_plugin()` with C linkage. It links against nothing of
/// longca's: the program exports what these headers declare. examples/plugin/ is a whole one.
extern "C" __attribute__((visibility("default"))) const longca::PluginInfo* longca_plugin();
