#include "attention/registry.h"

#include <utility>

#include "attention/cpu/kernels.h"
#include "core/error.h"
#include "core/nearest.h"

namespace longca {

KernelRegistry& KernelRegistry::global() {
  static KernelRegistry registry = [] {
    KernelRegistry r;
    r.add(make_naive_cpu());
    r.add(make_flash_cpu());
    r.add(make_block_sparse_cpu());
    return r;
  }();
  return registry;
}

std::vector<std::string> KernelRegistry::names() const {
  std::vector<std::string> names;
  for (const auto& kernel : kernels_) names.push_back(kernel->capabilities().name);
  return names;
}

bool KernelRegistry::contains(const std::string& name) const {
  for (const auto& kernel : kernels_) {
    if (kernel->capabilities().name == name) return true;
  }
  return false;
}

const Kernel& KernelRegistry::find(const std::string& name) const {
  for (const auto& kernel : kernels_) {
    if (kernel->capabilities().name == name) return *kernel;
  }
  throw_input_error("unknown kernel '{}'{}", name, suggestion(name, names()));
}

void KernelRegistry::add(std::unique_ptr<Kernel> kernel) {
  const std::string& name = kernel->capabilities().name;
  if (contains(name)) throw_input_error("a kernel named '{}' exists already", name);
  kernels_.push_back(std::move(kernel));
}

}  // namespace longca
