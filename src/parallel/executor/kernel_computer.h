#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "attention/api/kernel.h"
#include "attention/api/problem.h"
#include "parallel/executor/executor.h"
#include "parallel/transport/address_map.h"

namespace longca {

/// Who merges the results (o and lse, or dq) of steps over the same rows.
enum class Merging : std::uint8_t {
  /// On the CPU the kernel if it can, as its accumulator is in cache. On a GPU a pass after the
  /// kernels: merging two bf16 results moves 10 bytes per element, accumulating in float32 (clear,
  /// write, read, write, round) 22.
  automatic,
  by_kernel,  ///< the kernel if it can
  after,      ///< a pass after the kernels
};

/// KernelComputer's note "merging" where no call of a kernel merges anything.
inline constexpr std::string_view kMergedInPasses = "after the kernel, up to 4 results in one pass";

/// Whether a kernel that can do this computes the op as a step among others of its rows, whatever
/// its mask: it needs an lse where results are merged, and gradients by the lse that ranks share.
Support check_step(const Capabilities& can, const RankPlan& plan, const Op& op, DType dtype);

/// Computes the steps of a rank with a kernel of the registry. Steps of equal shape and mask share
/// a plan. Results that the kernel does not merge are merged by separate passes, through memory
/// that the steps share; so are key gradients unless the kernel adds them in float32
/// (Kernel::sums_key_gradients).
class KernelComputer final : public StepComputer {
 public:
  /// `problem`: of all ranks together; the steps take dtype, scale and device from it. `kernel`
  /// must outlive this object, and so must `map`: where tensors of the plan lie in a call.
  KernelComputer(const Kernel& kernel, const Problem& problem, Merging merging = Merging::automatic,
                 const AddressMap* map = nullptr);
  ~KernelComputer() override;

  Support prepare(const RankPlan& plan, bool backward, int op, const OpViews& views) override;
  void ready() override;
  void run(bool backward, int op, Stream stream) override;
  /// Takes effect where the kernel's plan can prepare rows apart (Plan::prepare_rows), the step's
  /// inputs are used in place, and no other backward step shares the plan: no other call may come
  /// between its rows and the rest.
  void expect_early(int op) override;
  bool has_early(int op) const override;
  void run_early(int op, Stream stream) override;
  std::int64_t workspace_bytes() const override;
  std::map<std::string, std::string> notes() const override;
  /// What the kernel's plans spent on compiling, while made or in their first calls.
  double compile_ms() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longca
