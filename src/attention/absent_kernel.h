#pragma once

#include <memory>
#include <string>
#include <utility>

#include "attention/api/kernel.h"
#include "core/error.h"

namespace longca {

/// The row of a kernel that this build does not have: it says what it could do and what to install.
class AbsentKernel final : public Kernel {
 public:
  using CanExpress = Support (*)(const Problem&, const Mask&);

  /// `reason` follows what the device itself lacks. `words` is the kernel's own `can_express`, if
  /// it has one.
  explicit AbsentKernel(Capabilities capabilities, std::string reason = "",
                        CanExpress words = nullptr)
      : capabilities_(std::move(capabilities)), reason_(std::move(reason)), can_express_(words) {}

  const Capabilities& capabilities() const override { return capabilities_; }

  Support supports(const Problem& problem, const Mask& mask) const override {
    if (auto support = check_capabilities(capabilities_, problem, mask); !support.ok()) {
      return support;
    }
    if (auto support = can_express(problem, mask); !support.ok()) return support;
    return Support::unavailable(reason_);
  }

  Support can_express(const Problem& problem, const Mask& mask) const override {
    if (can_express_ != nullptr) return can_express_(problem, mask);
    return Kernel::can_express(problem, mask);
  }

  std::unique_ptr<Plan> plan(const Problem& /*problem*/, const Mask& /*mask*/) const override {
    throw_internal_error(__FILE__, __LINE__, "supports()", capabilities_.name + " is not built");
  }

 private:
  Capabilities capabilities_;
  std::string reason_;
  CanExpress can_express_;
};

}  // namespace longca
