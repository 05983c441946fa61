#pragma once

#include <memory>

#include "attention/kernel.h"
#include "attention/problem.h"
#include "parallel/executor/executor.h"

namespace longca {

/// Computes the steps of a rank with a kernel of the registry. Steps of equal shape and mask share
/// a plan of the kernel. A kernel that can merge into given outputs does; the results of others are
/// merged in passes of their own, from memory that the steps share.
class KernelComputer final : public StepComputer {
 public:
  /// `problem`: the whole, from which the steps have dtype, scale and device. The kernel outlives
  /// this object.
  KernelComputer(const Kernel& kernel, const Problem& problem);
  ~KernelComputer() override;

  Support prepare(const RankPlan& plan, bool backward, int op, const OpViews& views) override;
  void ready() override;
  void run(bool backward, int op, Stream stream) override;
  std::int64_t workspace_bytes() const override;
  std::map<std::string, std::string> notes() const override;
  /// What the kernel's plans took for compiling, in their making or their first calls.
  double compile_ms() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longca
