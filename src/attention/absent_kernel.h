#pragma once

#include <memory>
#include <string>
#include <utility>

#include "attention/kernel.h"
#include "core/error.h"

namespace longca {

/// The row of a kernel that this build does not have: it says what it could do and what to install.
class AbsentKernel final : public Kernel {
 public:
  using Expresses = Support (*)(const Problem&, const Mask&);

  /// `reason` follows what the device itself lacks. `words` is the kernel's own `expresses`, if it
  /// has one.
  explicit AbsentKernel(Capabilities capabilities, std::string reason = "",
                        Expresses words = nullptr)
      : capabilities_(std::move(capabilities)), reason_(std::move(reason)), expresses_(words) {}

  const Capabilities& capabilities() const override { return capabilities_; }

  Support supports(const Problem& problem, const Mask& mask) const override {
    if (auto support = check_capabilities(capabilities_, problem, mask); !support.ok()) {
      return support;
    }
    if (auto support = expresses(problem, mask); !support.ok()) return support;
    return Support::unavailable(reason_);
  }

  Support expresses(const Problem& problem, const Mask& mask) const override {
    if (expresses_ != nullptr) return expresses_(problem, mask);
    return Kernel::expresses(problem, mask);
  }

  std::unique_ptr<Plan> plan(const Problem& /*problem*/, const Mask& /*mask*/) const override {
    throw_internal_error(__FILE__, __LINE__, "supports()", capabilities_.name + " is not built");
  }

 private:
  Capabilities capabilities_;
  std::string reason_;
  Expresses expresses_;
};

}  // namespace longca
