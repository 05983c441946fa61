#pragma once

#include <string>

namespace longca {

/// Loads a plug-in into this process and adds its kernels to KernelRegistry::global(). Throws
/// InputError: not a shared library, no longca_plugin in it, another version, a kernel's name
/// taken, an exception while loading.
void load_plugin(const std::string& file);

/// The same, tried in a child process before: a plug-in that ends the process that loads it (a
/// crash, an exit, an exception out of a static constructor) is an InputError too. To be called
/// before this process starts threads.
void load_plugin_safely(const std::string& file);

}  // namespace longca
