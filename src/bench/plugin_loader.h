#pragma once

#include <string>

namespace longca {

/// Whether a plug-in is in Python, by the name of its file.
bool is_python_plugin(const std::string& file);

/// Loads a plug-in in C++ into this process and adds its kernels to KernelRegistry::global().
/// Throws InputError: not a shared library, no longca_plugin in it, another interface, a kernel's
/// name taken, an exception while loading.
void load_plugin(const std::string& file);

/// The same, tried in a child process before, so that a plug-in that ends the process that loads it
/// (a crash, an exit, an exception out of a static constructor) is an InputError too. One in Python
/// is never loaded here, but described by a process of its own. Call it before this process starts
/// threads.
void load_plugin_safely(const std::string& file);

}  // namespace longca
