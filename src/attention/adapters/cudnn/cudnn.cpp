#include "attention/adapters/cudnn/cudnn.h"

#include <fmt/format.h>

#include "attention/adapters/cudnn/form.h"
#include "attention/adapters/cudnn/graph.h"
#include "attention/adapters/cudnn/library.h"
#include "core/error.h"

namespace longca {
namespace {

class CudnnPlan final : public Plan {
 public:
  CudnnPlan(const Problem& problem, const CudnnForm& form)
      : graphs_(problem, form), has_backward_(problem.backward) {}

  void forward(const ForwardArgs& args) override {
    LONGCA_CHECK(!args.accumulate, "cuDNN cannot merge into given outputs");
    graphs_.forward(args);
  }
  void backward(const BackwardArgs& args) override {
    LONGCA_CHECK(has_backward_, "the plan was made for the forward pass only");
    LONGCA_CHECK(!args.accumulate, "cuDNN cannot add to given gradients");
    graphs_.backward(args);
  }
  std::int64_t workspace_bytes() const override { return graphs_.workspace_bytes(); }
  PlanScratch* scratch() override { return &graphs_.scratch(); }

 private:
  CudnnGraphs graphs_;
  bool has_backward_;
};

class Cudnn final : public Kernel {
 public:
  const Capabilities& capabilities() const override { return capabilities_; }

  Support supports(const Problem& problem, const Mask& mask) const override {
    if (auto support = check_capabilities(capabilities_, problem, mask); !support.ok()) {
      return support;
    }
    if (auto support = can_express(problem, mask); !support.ok()) return support;
    if (const CudnnLibrary& library = cudnn_library(); !library.support.ok()) {
      return library.support;
    }
    return CudnnGraphs::check(problem, *cudnn_form(mask));
  }

  Support can_express(const Problem& problem, const Mask& mask) const override {
    return cudnn_can_express(problem, mask);
  }

  std::string version() const override {
    const CudnnLibrary& library = cudnn_library();
    return library.support.ok() ? "cuDNN " + cudnn_version_text(library.version) : "";
  }

  std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const override {
    return std::make_unique<CudnnPlan>(problem, *cudnn_form(mask));
  }

 private:
  Capabilities capabilities_ = cudnn_capabilities();
};

}  // namespace

std::unique_ptr<Kernel> make_cudnn() {
  return std::make_unique<Cudnn>();
}

}  // namespace longca
