#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attention/kernel.h"

namespace longca {

/// The kernels that this program knows, in the order of the tables. Plug-ins are added at start-up.
class KernelRegistry {
 public:
  /// The built-in kernels.
  static KernelRegistry& global();

  std::span<const std::unique_ptr<Kernel>> kernels() const { return kernels_; }
  std::vector<std::string> names() const;
  /// Throws InputError that suggests the nearest name.
  const Kernel& find(const std::string& name) const;
  bool contains(const std::string& name) const;
  /// Throws InputError if a kernel of that name exists.
  void add(std::unique_ptr<Kernel> kernel);

 private:
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

}  // namespace longca
