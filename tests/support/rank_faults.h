#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "attention/api/plugin.h"

/// Kernels that fail on one rank only, for plug-ins of tests: another kernel underneath.
namespace longca::testing {

/// What happens on rank 1 before the forward pass, and after the backward pass.
struct RankFault {
  const char* name;
  void (*run)(const ForwardArgs& args) = nullptr;
  void (*after_backward)(const BackwardArgs& args) = nullptr;
};

/// By the variables of Open MPI and of others that speak PMI.
inline bool is_faulty_rank() {
  constexpr std::string_view kFaulty = "1";
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    if (const char* rank = std::getenv(name)) return rank == kFaulty;
  }
  return false;
}

class RankFaultPlan final : public Plan {
 public:
  RankFaultPlan(const RankFault& fault, std::unique_ptr<Plan> inner)
      : fault_(fault), inner_(std::move(inner)) {}

  void forward(const ForwardArgs& args) override {
    if (fault_.run != nullptr && is_faulty_rank()) fault_.run(args);
    inner_->forward(args);
  }
  void backward(const BackwardArgs& args) override {
    inner_->backward(args);
    if (fault_.after_backward != nullptr && is_faulty_rank()) fault_.after_backward(args);
  }
  std::int64_t workspace_bytes() const override { return inner_->workspace_bytes(); }

 private:
  const RankFault& fault_;
  std::unique_ptr<Plan> inner_;
};

class RankFaultKernel final : public Kernel {
 public:
  RankFaultKernel(const RankFault& fault, const Kernel& inner)
      : fault_(fault), inner_(inner), capabilities_(inner.capabilities()) {
    capabilities_.name = fault.name;
  }
  const Capabilities& capabilities() const override { return capabilities_; }
  Support supports(const Problem& problem, const Mask& mask) const override {
    return inner_.supports(problem, mask);
  }
  std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const override {
    return std::make_unique<RankFaultPlan>(fault_, inner_.plan(problem, mask));
  }

 private:
  const RankFault& fault_;
  const Kernel& inner_;
  Capabilities capabilities_;
};

/// One kernel per fault; these and `inner` outlive the registry.
inline void add_rank_faults(KernelRegistry& registry, const Kernel& inner,
                            std::span<const RankFault> faults) {
  for (const RankFault& fault : faults) {
    registry.add(std::make_unique<RankFaultKernel>(fault, inner));
  }
}

}  // namespace longca::testing
