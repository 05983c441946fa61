#include "platform_notices.h"

#include <fmt/format.h>

#include "attention/api/registry.h"
#include "core/nearest.h"

namespace longca {

std::vector<std::string> describe_unknown_kernels(const cost::Platform& page) {
  std::vector<std::string> lines;
  for (const auto& [kernel, rates] : page.rates) {
    if (KernelRegistry::global().contains(kernel)) continue;
    lines.push_back(
        fmt::format("{} has rates of '{}', and there is no such kernel here{}: nothing "
                    "is timed by them",
                    page.name, kernel, suggestion(kernel, KernelRegistry::global().names())));
  }
  return lines;
}

}  // namespace longca
