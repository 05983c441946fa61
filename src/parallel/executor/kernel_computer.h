#pragma once

#include <cstdint>
#include <memory>

#include "attention/api/kernel.h"
#include "attention/api/problem.h"
#include "parallel/executor/executor.h"

namespace longca {

/// Who merges the results of steps over the same rows: o and lse, or dq.
enum class Merging : std::uint8_t {
  /// The kernel if it can, on the CPU, where what it merges into is in its caches. On a GPU passes
  /// after the kernels: of two results in bfloat16 they write, read and write 10 bytes per element,
  /// where float32 that is cleared, written, read and written, and rounded takes 22.
  automatic,
  by_kernel,  ///< if it can
  after,
};

/// Computes the steps of a rank with a kernel of the registry. Steps of equal shape and mask share
/// a plan of the kernel. What the kernel does not merge is merged in passes of their own, from
/// memory that the steps share. Gradients of keys, of which others only travel, are summed by a
/// kernel that can.
class KernelComputer final : public StepComputer {
 public:
  /// `problem`: the whole, from which the steps have dtype, scale and device. The kernel outlives
  /// this object.
  KernelComputer(const Kernel& kernel, const Problem& problem,
                 Merging merging = Merging::automatic);
  ~KernelComputer() override;

  Support prepare(const RankPlan& plan, bool backward, int op, const OpViews& views) override;
  void ready() override;
  void run(bool backward, int op, Stream stream) override;
  /// Of steps whose kernel prepares rows (Plan::prepare_rows), from where they lie, with a plan that no
  /// other step of the backward pass uses: between its rows and the rest there is no other call.
  void expect_early(int op) override;
  bool has_early(int op) const override;
  void run_early(int op, Stream stream) override;
  std::int64_t workspace_bytes() const override;
  std::map<std::string, std::string> notes() const override;
  /// What the kernel's plans took for compiling, in their making or their first calls.
  double compile_ms() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longca
