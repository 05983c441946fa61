// Kernels that fail on one rank only: `naive` underneath.

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "attention/plugin.h"

namespace {

using namespace longca;

/// The rank that fails; as text of Open MPI's variable.
constexpr std::string_view kFaulty = "1";

bool is_faulty() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank != nullptr && rank == kFaulty;
}

void be_killed() {
  std::raise(SIGKILL);
}
void sleep_for_ever() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}
void compute_for_ever() {
  for (volatile bool go_on = true; go_on;) {
  }
}
void stop() {
  std::raise(SIGSTOP);
}
void exit_process() {
  ::_exit(5);
}
void throw_exception() {
  throw std::runtime_error("this kernel throws on one rank");
}

struct Fault {
  const char* name;
  void (*run)() = nullptr;
};

constexpr Fault kFaults[] = {
    {"rank_killed", be_killed},
    {"rank_sleeps", sleep_for_ever},
    {"rank_stops", stop},
    {"rank_computes", compute_for_ever},
    {"rank_exits", exit_process},
    {"rank_throws", throw_exception},
    {"rank_none"},
};

class FaultPlan : public Plan {
 public:
  FaultPlan(const Fault& fault, std::unique_ptr<Plan> inner)
      : fault_(fault), inner_(std::move(inner)) {}

  void forward(const ForwardArgs& args) override {
    if (fault_.run != nullptr && is_faulty()) fault_.run();
    inner_->forward(args);
  }
  void backward(const BackwardArgs& args) override { inner_->backward(args); }
  std::int64_t workspace_bytes() const override { return inner_->workspace_bytes(); }

 private:
  const Fault& fault_;
  std::unique_ptr<Plan> inner_;
};

class FaultKernel : public Kernel {
 public:
  FaultKernel(const Fault& fault, const Kernel& inner)
      : fault_(fault), inner_(inner), capabilities_(inner.capabilities()) {
    capabilities_.name = fault.name;
  }
  const Capabilities& capabilities() const override { return capabilities_; }
  Support supports(const Problem& problem, const Mask& mask) const override {
    return inner_.supports(problem, mask);
  }
  std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const override {
    return std::make_unique<FaultPlan>(fault_, inner_.plan(problem, mask));
  }

 private:
  const Fault& fault_;
  const Kernel& inner_;
  Capabilities capabilities_;
};

/// A rank may fail before it is ready: once, while a file is there.
void fail_at_start() {
  const char* once = std::getenv("LONGCA_TEST_FAIL_ONCE");
  if (once != nullptr && is_faulty() && ::unlink(once) == 0) ::_exit(7);
}

void add_kernels(KernelRegistry& registry) {
  fail_at_start();
  const Kernel& naive = registry.find("naive");
  for (const Fault& fault : kFaults) registry.add(std::make_unique<FaultKernel>(fault, naive));
}

}  // namespace

const longca::PluginInfo* longca_plugin() {
  static const PluginInfo info{.name = "rank_faults", .add_kernels = add_kernels};
  return &info;
}
