#pragma once

#include <string>

#include "attention/api/kernel.h"
#include "attention/api/registry.h"
#if !__has_include("attention/api/interface_hash.h")
#error "a plug-in is compiled with -I LONGCA/build/release/include, which ./longca writes"
#endif
#include "attention/api/interface_hash.h"

namespace longca {

/// The name and entry point of a plug-in.
struct PluginInfo {
  const char* name = "";  ///< for messages
  /// Adds the plug-in's kernels to the registry; may throw.
  void (*add_kernels)(KernelRegistry& registry) = nullptr;
};

/// The version of this program's plug-in interface: the hash over the headers that it was compiled
/// with.
std::string plugin_interface();
/// The version that a plug-in was compiled with, read from its file without loading it; empty if
/// the file has none.
std::string plugin_interface(const std::string& file);

}  // namespace longca

extern "C" {
/// The one symbol that `--plugin FILE.so` calls: a plug-in is a shared library that defines it. It
/// links against nothing of longca's: the program exports what these headers declare.
/// examples/plugin/ is a whole one.
__attribute__((visibility("default"))) const longca::PluginInfo* longca_plugin();

/// The hash that a plug-in carries; the program looks for the text in the file.
// NOLINTBEGIN(readability-identifier-naming): a symbol, as longca_plugin
extern __attribute__((visibility("default"), weak)) const char longca_plugin_interface[];
const char longca_plugin_interface[] = "longca plug-in interface " LONGCA_INTERFACE_HASH;
// NOLINTEND(readability-identifier-naming)
}
