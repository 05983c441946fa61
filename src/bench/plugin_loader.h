#pragma once

#include <string>

#include "core/device.h"

namespace longca {

/// Whether a plug-in is in Python, by the name of its file.
bool is_python_plugin(const std::string& file);

/// Loads a plug-in in C++ into this process and adds its kernels to KernelRegistry::global().
/// Throws InputError: not a shared library, no longca_plugin in it, another interface, a kernel's
/// name taken, an exception while loading.
void load_plugin(const std::string& file);

inline constexpr double kPluginLimit = 60;  ///< s to load a plug-in

/// Adds the kernels of a plug-in, in C++ or Python, to KernelRegistry::global() as a process of its
/// own describes them, which loads it: nothing of it runs here, and whatever it does to that
/// process (a crash, an exit, an exception out of a static constructor, no end within `limit_s`) is
/// an InputError. Kernels of C++ cannot be planned in this process then.
void describe_plugin(const std::string& file, double limit_s = kPluginLimit);

/// That process: loads the plug-in and sends its description over `socket`.
void answer_for_plugin(int socket, const std::string& file);

/// The file of the plug-in that the kernel was described by which the registry finds for this
/// device; empty for one of this program. Throws InputError for an unknown name.
std::string plugin_of(const std::string& kernel, DeviceKind device);

}  // namespace longca
