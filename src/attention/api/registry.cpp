#include "attention/api/registry.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/nearest.h"
#include "core/printable.h"

namespace longca {

std::vector<std::string> KernelRegistry::names() const {
  std::vector<std::string> names;
  for (const auto& kernel : kernels_) {
    const std::string& name = kernel->capabilities().name;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

bool KernelRegistry::contains(const std::string& name) const {
  return std::ranges::any_of(
      kernels_, [&](const auto& kernel) { return kernel->capabilities().name == name; });
}

const Kernel& KernelRegistry::find(const std::string& name, DeviceKind device) const {
  const Kernel* elsewhere = nullptr;
  for (const auto& kernel : kernels_) {
    const Capabilities& can = kernel->capabilities();
    if (can.name != name) continue;
    if (can.device == device) return *kernel;
    if (elsewhere == nullptr) elsewhere = kernel.get();
  }
  if (elsewhere != nullptr) return *elsewhere;
  throw_input_error("unknown kernel '{}'{}", name, suggestion(name, names()));
}

void KernelRegistry::add(std::unique_ptr<Kernel> kernel) {
  const Capabilities& can = kernel->capabilities();
  check_name("kernel", can.name);
  if (can.name == "all") throw_input_error("a kernel named 'all', which means every kernel");
  if (can.dtypes.empty()) throw_input_error("kernel '{}' has no dtypes: one at least", can.name);
  for (const auto& known : kernels_) {
    if (known->capabilities().name == can.name && known->capabilities().device == can.device) {
      throw_input_error("a kernel named '{}' exists already", can.name);
    }
  }
  kernels_.push_back(std::move(kernel));
}

}  // namespace longca
