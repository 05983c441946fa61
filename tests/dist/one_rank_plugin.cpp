// `flash`, but the pass throws on rank 1 alone: what ranks of one case see of each other's faults.

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "attention/plugin.h"

namespace {

using namespace longca;

bool is_rank_one() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    if (const char* rank = std::getenv(name)) return std::string(rank) == "1";
  }
  return false;
}

class OneRankPlan : public Plan {
 public:
  explicit OneRankPlan(std::unique_ptr<Plan> inner) : inner_(std::move(inner)) {}
  void forward(const ForwardArgs& args) override {
    if (is_rank_one()) throw std::runtime_error("only this rank throws");
    inner_->forward(args);
  }
  void backward(const BackwardArgs& args) override { inner_->backward(args); }
  std::int64_t workspace_bytes() const override { return inner_->workspace_bytes(); }

 private:
  std::unique_ptr<Plan> inner_;
};

class OneRankKernel : public Kernel {
 public:
  explicit OneRankKernel(const Kernel& inner) : inner_(inner), capabilities_(inner.capabilities()) {
    capabilities_.name = "fault_one_rank";
  }
  const Capabilities& capabilities() const override { return capabilities_; }
  Support supports(const Problem& problem, const Mask& mask) const override {
    return inner_.supports(problem, mask);
  }
  std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const override {
    return std::make_unique<OneRankPlan>(inner_.plan(problem, mask));
  }

 private:
  const Kernel& inner_;
  Capabilities capabilities_;
};

}  // namespace

const longca::PluginInfo* longca_plugin() {
  static const PluginInfo info{
      .name = "one rank", .add_kernels = [](KernelRegistry& registry) {
        registry.add(std::make_unique<OneRankKernel>(registry.find("flash")));
      }};
  return &info;
}
