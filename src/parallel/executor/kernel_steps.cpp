#include "parallel/executor/kernel_steps.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "core/error.h"

namespace longca {
namespace {

class ForwardStep final : public KernelStep {
 public:
  ForwardStep(const StepSetting& setting, const Problem& problem, const OpViews& views, bool first,
              std::optional<LatePart> late)
      : KernelStep(setting, problem, std::move(late)), first_(first) {
    Scratch& scratch = setting.scratch;
    const TensorView& o = views.tensors.at(3);
    const LseView& lse = views.lses.at(0);
    inputs_ = {input(views.tensors[0], scratch), input(views.tensors[1], scratch),
               input(views.tensors[2], scratch)};
    const bool fitting = fits(o) && fits(lse);
    const bool mergeable = o.dtype == DType::float32;
    LONGCA_CHECK(first || mergeable, "a result is merged into {}", to_string(o.dtype));
    if (late_) {
      delivery_ = Delivery::late;
    } else if (fitting && first && o.dtype == problem.dtype) {
      delivery_ = Delivery::direct;
    } else if (fitting && mergeable && can_.accumulate) {
      delivery_ = Delivery::accumulate;
    } else {
      delivery_ = Delivery::partial;
    }
    problem_.accumulate = delivery_ == Delivery::accumulate;
    const bool elsewhere = delivery_ == Delivery::partial;
    o_ = elsewhere ? StagedTensor::in(scratch, o, problem.dtype) : StagedTensor::itself(o);
    lse_ = elsewhere ? StagedLse::in(scratch, lse) : StagedLse::itself(lse);
    sink_ = views.sink;
  }

  void place(const Scratch& scratch) override {
    for (StagedTensor& tensor : inputs_) tensor.place(scratch);
    o_.place(scratch);
    lse_.place(scratch);
    if (!late_) return;
    const Partial part = late_->store->part(late_->place);
    o_.used = part.o;
    lse_.used = part.lse;
  }

  void run(Stream stream) override {
    make_room(stream);
    for (const StagedTensor& tensor : inputs_) load(tensor, stream);
    if (delivery_ == Delivery::accumulate && first_) {
      math_.clear(o_.own, stream);
      math_.clear(lse_.own, stream);
    }
    plan_->forward({.q = map_.at(inputs_[0].used),
                    .k = map_.at(inputs_[1].used),
                    .v = map_.at(inputs_[2].used),
                    .o = map_.at(o_.used),
                    .lse = map_.at(lse_.used),
                    .sink = sink_,
                    .accumulate = problem_.accumulate,
                    .earlier = earlier(),
                    .stream = stream});
    if (delivery_ == Delivery::partial) deliver(stream);
  }

 private:
  EarlierResult earlier() const {
    if (!merges_earlier()) return {};
    return {map_.at(o_.used), map_.at(lse_.used)};
  }
  void deliver(Stream stream) const {
    if (o_.own.dtype == DType::float32) {
      return math_.merge({o_.used, lse_.used}, o_.own, lse_.own, first_, stream);
    }
    math_.copy(o_.used, o_.own, stream);
    math_.copy(lse_.used, lse_.own, stream);
  }

  bool first_;
  std::array<StagedTensor, 3> inputs_;  ///< q, k, v
  StagedTensor o_;
  StagedLse lse_;
  const float* sink_;
};

class BackwardStep final : public KernelStep {
 public:
  BackwardStep(const StepSetting& setting, const Problem& problem, const OpViews& views,
               bool first_dq, bool first_dkv, std::optional<LatePart> late)
      : KernelStep(setting, problem, std::move(late)),
        can_sum_keys_(setting.sums_keys),
        first_{first_dq, first_dkv, first_dkv} {
    Scratch& scratch = setting.scratch;
    problem_.backward = true;
    LONGCA_CHECK(views.tensors.at(4).dtype == problem.dtype, "the o of a backward pass is {}",
                 to_string(views.tensors[4].dtype));
    for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i] = input(views.tensors[i], scratch);
    const LseView& lse = views.lses.at(0);
    lse_ = fits(lse) ? StagedLse::itself(lse) : StagedLse::in(scratch, lse);
    copies_inputs_ |= lse_.staged();
    choose_outputs(std::span(views.tensors).subspan(inputs_.size()), scratch);
  }

  void place(const Scratch& scratch) override {
    for (StagedTensor& tensor : inputs_) tensor.place(scratch);
    for (StagedTensor& tensor : outputs_) tensor.place(scratch);
    lse_.place(scratch);
    if (late_) outputs_[0].used = late_->store->part(late_->place).o;
  }

  void run(Stream stream) override {
    make_room(stream);
    for (const StagedTensor& tensor : inputs_) load(tensor, stream);
    if (lse_.staged()) math_.copy(lse_.own, lse_.used, stream);
    if (delivery_ == Delivery::accumulate) {
      for (std::size_t i = 0; i < outputs_.size(); ++i) {
        if (first_[i] || outputs_[i].staged()) math_.clear(outputs_[i].used, stream);
      }
    }
    plan_->backward(args(stream));
    for (std::size_t i = 0; i < outputs_.size(); ++i) deliver(outputs_[i], first_[i], stream);
  }

  bool can_prepare_rows() const override {
    return !inputs_[0].staged() && !inputs_[4].staged() && !lse_.staged();
  }
  bool has_early() const override { return prepares_rows_; }
  void run_early(Stream stream) override { plan_->prepare_rows(args(stream)); }

 private:
  BackwardArgs args(Stream stream) const {
    return {.dout = map_.at(inputs_[0].used),
            .q = map_.at(inputs_[1].used),
            .k = map_.at(inputs_[2].used),
            .v = map_.at(inputs_[3].used),
            .o = map_.at(inputs_[4].used),
            .lse = map_.at(lse_.used),
            .dq = map_.at(outputs_[0].used),
            .dk = map_.at(outputs_[1].used),
            .dv = map_.at(outputs_[2].used),
            .accumulate = problem_.accumulate,
            .key_gradients = keys_,
            .held = merges_earlier() ? HeldGradient{late_->held.rows, late_->held.heads}
                                     : HeldGradient{},
            .stream = stream};
  }

  /// Whether the kernel may overwrite the output in place, in the problem's dtype.
  bool direct(const TensorView& own, bool first) const {
    return first && own.dtype == problem_.dtype && fits(own);
  }

  /// Whether the kernel may write or add dk and dv in place, whatever it does with dq.
  bool sums_into(std::span<const TensorView> keys) const {
    return can_sum_keys_ && std::ranges::all_of(keys, [&](const TensorView& gradient) {
             return gradient.dtype == DType::float32 && fits(gradient);
           });
  }

  void choose_outputs(std::span<const TensorView> own, Scratch& scratch) {
    LONGCA_CHECK(own.size() == outputs_.size(), "{} gradients", own.size());
    const bool keys_apart = sums_into(own.subspan(1));
    const auto in_place = [&](std::size_t i) {
      return i == 0 ? late_ || direct(own[i], first_[i]) : keys_apart || direct(own[i], first_[i]);
    };
    bool all_in_place = true;
    for (std::size_t i = 0; i < own.size(); ++i) {
      all_in_place &= in_place(i);
      LONGCA_CHECK(first_[i] || own[i].dtype == DType::float32, "a gradient is added to {}",
                   to_string(own[i].dtype));
    }
    delivery_ = late_             ? Delivery::late
                : all_in_place    ? Delivery::direct
                : can_.accumulate ? Delivery::accumulate
                                  : Delivery::partial;
    problem_.accumulate = delivery_ == Delivery::accumulate;
    if (keys_apart && !problem_.accumulate) {
      keys_ = first_[1] ? KeyGradients::overwrite_float32 : KeyGradients::add_float32;
    }
    const DType written = problem_.accumulate ? DType::float32 : problem_.dtype;
    for (std::size_t i = 0; i < own.size(); ++i) {
      const bool itself =
          problem_.accumulate ? own[i].dtype == written && fits(own[i]) : in_place(i);
      outputs_[i] =
          itself ? StagedTensor::itself(own[i]) : StagedTensor::in(scratch, own[i], written);
    }
  }

  void deliver(const StagedTensor& output, bool first, Stream stream) const {
    if (!output.staged()) return;
    if (output.own.dtype == DType::float32) {
      math_.add(output.used, output.own, first, stream);
    } else if (output.used.dtype == DType::float32) {
      math_.convert(output.used, output.own, stream);
    } else {
      math_.copy(output.used, output.own, stream);
    }
  }

  bool can_sum_keys_;
  std::array<bool, 3> first_;
  std::array<StagedTensor, 5> inputs_;   ///< dout, q, k, v, o
  std::array<StagedTensor, 3> outputs_;  ///< dq, dk, dv
  StagedLse lse_;
};

class CallStep final : public ComputeStep {
 public:
  explicit CallStep(std::function<void(Stream)> call) : call_(std::move(call)) {}
  void run(Stream stream) override { call_(stream); }

 private:
  std::function<void(Stream)> call_;
};

}  // namespace

StagedTensor KernelStep::input(const TensorView& own, Scratch& scratch) {
  LONGCA_CHECK(own.dtype == problem_.dtype, "a kernel's input is {}, the problem {}",
               to_string(own.dtype), to_string(problem_.dtype));
  if (fits(own)) return StagedTensor::itself(own);
  copies_inputs_ = true;
  return StagedTensor::in(scratch, own, own.dtype);
}

void KernelStep::load(const StagedTensor& tensor, Stream stream) const {
  if (tensor.staged()) math_.copy(tensor.own, tensor.used, stream);
}

std::unique_ptr<KernelStep> make_forward_step(const StepSetting& setting, const Problem& problem,
                                              const OpViews& views, bool first,
                                              std::optional<LatePart> late) {
  return std::make_unique<ForwardStep>(setting, problem, views, first, std::move(late));
}

std::unique_ptr<KernelStep> make_backward_step(const StepSetting& setting, const Problem& problem,
                                               const OpViews& views, bool first_dq, bool first_dkv,
                                               std::optional<LatePart> late) {
  return std::make_unique<BackwardStep>(setting, problem, views, first_dq, first_dkv,
                                        std::move(late));
}

std::unique_ptr<ComputeStep> make_call_step(std::function<void(Stream)> call) {
  return std::make_unique<CallStep>(std::move(call));
}

std::unique_ptr<ComputeStep> make_math_step(const Op& op, const OpViews& views, StepMath& math) {
  const auto step = [](auto call) { return make_call_step(std::move(call)); };
  StepMath* const m = &math;
  const std::vector<TensorView>& tensors = views.tensors;
  const std::vector<LseView>& lses = views.lses;
  if (std::holds_alternative<Clear>(op.what)) {
    if (!lses.empty()) return step([m, lse = lses[0]](Stream s) { m->clear(lse, s); });
    return step([m, tensor = tensors[0]](Stream s) { m->clear(tensor, s); });
  }
  if (std::holds_alternative<Copy>(op.what)) {
    return step([m, from = lses.at(0), to = lses.at(1)](Stream s) { m->copy(from, to, s); });
  }
  if (std::holds_alternative<Add>(op.what)) {
    return step([m, from = tensors[0], to = tensors[1]](Stream s) { m->add(from, to, false, s); });
  }
  if (std::holds_alternative<JoinSinks>(op.what)) {
    return step([m, sink = views.sink, o = tensors[0], lse = lses.at(0)](Stream s) {
      m->join_sinks(sink, o, lse, s);
    });
  }
  LONGCA_CHECK(std::holds_alternative<Convert>(op.what), "an op that is none of arithmetic");
  return step([m, from = tensors[0], to = tensors[1]](Stream s) { m->convert(from, to, s); });
}

}  // namespace longca
