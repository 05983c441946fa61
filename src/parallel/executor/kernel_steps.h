#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "attention/api/kernel.h"
#include "parallel/executor/executor.h"
#include "parallel/executor/part_store.h"
#include "parallel/executor/staging.h"
#include "parallel/executor/step_math.h"
#include "parallel/transport/address_map.h"

namespace longca {

/// A runnable op of a plan.
class ComputeStep {
 public:
  virtual ~ComputeStep() = default;
  /// Called once, after the scratch is allocated and the kernel's plans are made.
  virtual void place(const Scratch& /*scratch*/) {}
  virtual void run(Stream stream) = 0;
  /// See StepComputer::has_early and run_early.
  virtual bool has_early() const { return false; }
  virtual void run_early(Stream /*stream*/) {}
};

/// How a kernel delivers the result of a step.
enum class Delivery {
  direct,      ///< overwrites the step's outputs
  accumulate,  ///< merges into or adds to the step's outputs
  partial,     ///< writes temporaries, which a separate pass merges, adds or copies
  late,        ///< writes a part of o, or of dq, that is merged later (PartStore)
};

/// Where a late part goes, and the merges that must first free its slot.
struct LatePart {
  PartStore* store = nullptr;
  WaitingPart place;
  std::vector<MergeCall> before;
  Box held{};  ///< of the step's rows and heads: those of which the kernel merges the part there
};

/// What the kernel steps of a rank share.
struct StepSetting {
  const Capabilities& can;
  bool sums_keys;  ///< Kernel::sums_key_gradients
  StepMath& math;
  Scratch& scratch;
  const AddressMap& map;  ///< where the tensors of views lie in a call
};

/// A kernel's pass over one step. The step chooses `problem().accumulate`; the caller makes the
/// plan for that problem and sets it before the first run.
class KernelStep : public ComputeStep {
 public:
  const Problem& problem() const { return problem_; }
  Delivery delivery() const { return delivery_; }
  /// Whether inputs are copied first, because the kernel takes only contiguous tensors.
  bool copies_inputs() const { return copies_inputs_; }
  /// Whether the kernel writes or adds dk and dv in float32 while it overwrites dq in the dtype.
  bool sums_keys() const { return keys_ != KeyGradients::as_dq; }
  /// Whether the kernel merges the one earlier part of its rows.
  bool merges_earlier() const { return late_ && !late_->held.rows.empty(); }
  /// Whether dout, o and lse are used in place, so that their row work may be done before the run.
  virtual bool can_prepare_rows() const { return false; }
  /// `prepares_rows`: the plan keeps rows for this step, which prepares them before the run.
  void set_plan(Plan& plan, bool prepares_rows) {
    plan_ = &plan;
    prepares_rows_ = prepares_rows;
  }

 protected:
  KernelStep(const StepSetting& setting, const Problem& problem, std::optional<LatePart> late)
      : problem_(problem),
        can_(setting.can),
        math_(setting.math),
        map_(setting.map),
        late_(std::move(late)) {}

  /// Whether the kernel can use the tensor or lse as it lies.
  bool fits(const TensorView& tensor) const { return can_.strided || is_contiguous(tensor); }
  bool fits(const LseView& lse) const { return can_.strided || is_contiguous(lse); }
  /// The input itself if it fits, else a contiguous copy in the scratch.
  StagedTensor input(const TensorView& own, Scratch& scratch);
  /// Merges earlier parts so that this step's slot is free (LatePart).
  void make_room(Stream stream) const {
    if (late_) late_->store->merge(late_->before, math_, stream);
  }
  /// Copies a staged input to its place; others are used as they lie.
  void load(const StagedTensor& tensor, Stream stream) const;

  Problem problem_;
  const Capabilities& can_;
  StepMath& math_;
  const AddressMap& map_;
  Plan* plan_ = nullptr;
  bool prepares_rows_ = false;
  std::optional<LatePart> late_;
  Delivery delivery_ = Delivery::direct;
  KeyGradients keys_ = KeyGradients::as_dq;
  bool copies_inputs_ = false;
};

/// `problem`: the step's, with the dtype and scale of the whole. `late`: where the kernel writes o
/// or dq if it is merged later.
std::unique_ptr<KernelStep> make_forward_step(const StepSetting& setting, const Problem& problem,
                                              const OpViews& views, bool first,
                                              std::optional<LatePart> late);
std::unique_ptr<KernelStep> make_backward_step(const StepSetting& setting, const Problem& problem,
                                               const OpViews& views, bool first_dq, bool first_dkv,
                                               std::optional<LatePart> late);
std::unique_ptr<ComputeStep> make_call_step(std::function<void(Stream)> call);
/// For Add, Convert, Clear, JoinSinks and a Copy of lse.
std::unique_ptr<ComputeStep> make_math_step(const Op& op, const OpViews& views, StepMath& math);

}  // namespace longca
