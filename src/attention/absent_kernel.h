#pragma once

#include <memory>
#include <string>
#include <utility>

#include "attention/api/kernel.h"
#include "core/error.h"

namespace longca {

/// Stands in for a kernel that this build does not have: it says what the kernel could do and what
/// to install.
class AbsentKernel final : public Kernel {
 public:
  using CanExpress = Support (*)(const Problem&, const Mask&);

  /// `reason`: what to install, for machines that have the device; empty if without CUDA none has.
  /// `own_rule`: the kernel's own can_express, if it has one.
  explicit AbsentKernel(Capabilities capabilities, std::string reason = "",
                        CanExpress own_rule = nullptr)
      : capabilities_(std::move(capabilities)),
        reason_(std::move(reason)),
        can_express_(own_rule) {}

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
