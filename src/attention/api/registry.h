#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attention/api/kernel.h"

namespace longca {

/// The kernels of this program, in the order of the tables. Plug-ins are added at start-up.
class KernelRegistry {
 public:
  /// The registry of this process; begins with the built-in kernels (built_in_kernels.cpp).
  static KernelRegistry& global();

  std::span<const std::unique_ptr<Kernel>> kernels() const { return kernels_; }
  /// The names of the kernels, each once.
  std::vector<std::string> names() const;
  /// The kernel of that name for `device`, else the one for another device, whose `supports` says
  /// so. Throws InputError that suggests the nearest name.
  const Kernel& find(const std::string& name, DeviceKind device = DeviceKind::cpu) const;
  bool contains(const std::string& name) const;
  /// Throws InputError if its name is none (core/printable.h), or taken for the same device.
  void add(std::unique_ptr<Kernel> kernel);

 private:
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

}  // namespace longca
