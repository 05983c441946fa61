#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/cpu/kernels.h"
#include "core/error.h"
#include "parallel/executor/part_store.h"
#include "parallel/executor/staging.h"
#include "parallel/executor/step_math.h"

namespace longca::test {

/// As Capabilities has them.
struct Abilities {
  bool accumulate = true;
  bool sums_keys = false;
  bool merges_earlier = false;     ///< and adds to dq
  std::int64_t bytes_of_rows = 0;  ///< what its plans keep for rows prepared early
  bool strided = true;
  bool returns_lse = true;
  bool gradient_of_parts = true;
  bool says_workspace = true;
};

/// `flash` with fewer abilities: those of the kernels that come from elsewhere. It checks that
/// nothing is asked of it that it does not claim, that rows prepared early are those of the call,
/// and counts.
class PlainKernel final : public Kernel {
 public:
  explicit PlainKernel(Abilities abilities)
      : capabilities_(inner_->capabilities()),
        sums_keys_(abilities.sums_keys),
        bytes_of_rows_(abilities.bytes_of_rows) {
    capabilities_.name = "plain";
    capabilities_.accumulate = abilities.accumulate;
    capabilities_.strided = abilities.strided;
    capabilities_.adds_to_dq = abilities.merges_earlier;
    if (abilities.merges_earlier) {
      capabilities_.merges_earlier_dims.resize(256);  // any
      std::iota(capabilities_.merges_earlier_dims.begin(), capabilities_.merges_earlier_dims.end(),
                1);
    }
    capabilities_.returns_lse = abilities.returns_lse;
    capabilities_.gradient_of_parts = abilities.gradient_of_parts;
    says_workspace_ = abilities.says_workspace;
  }
  const Capabilities& capabilities() const override { return capabilities_; }
  bool sums_key_gradients() const override { return sums_keys_; }
  Support supports(const Problem& problem, const Mask& mask) const override {
    return check_capabilities(capabilities_, problem, mask);
  }
  std::unique_ptr<longca::Plan> plan(const Problem& problem, const Mask& mask) const override {
    LONGCA_CHECK(supports(problem, mask).ok(), "a plan of what is not supported");
    ++plans;
    Problem summing = problem;
    summing.accumulate = true;
    auto sums = sums_keys_ ? inner_->plan(summing, mask) : nullptr;
    return std::make_unique<Checked>(*this, problem, inner_->plan(problem, mask), std::move(sums));
  }

  mutable int plans = 0;
  mutable int merged = 0;         ///< forward calls that merged an earlier result
  mutable int added = 0;          ///< backward calls that added to dq
  mutable int rows_kept = 0;      ///< plans that were told to keep rows
  mutable int rows_prepared = 0;  ///< calls that others had prepared

 private:
  class Checked final : public longca::Plan {
   public:
    Checked(const PlainKernel& kernel, const Problem& problem, std::unique_ptr<longca::Plan> inner,
            std::unique_ptr<longca::Plan> summing)
        : kernel_(kernel),
          can_(kernel.capabilities_),
          problem_(problem),
          says_workspace_(kernel.says_workspace_),
          inner_(std::move(inner)),
          summing_(std::move(summing)) {}
    void forward(const ForwardArgs& args) override {
      check_call(args.accumulate, {args.q, args.k, args.v, args.o}, args.lse);
      check_output(args.o, args.accumulate);
      if (args.earlier.o.data != nullptr) return forward_merging(args);
      inner_->forward(args);
    }
    void backward(const BackwardArgs& args) override {
      if (!args.held.empty()) return backward_adding(args);
      if (args.key_gradients != KeyGradients::as_dq) return backward_summing(args);
      check_call(args.accumulate,
                 {args.dout, args.q, args.k, args.v, args.o, args.dq, args.dk, args.dv}, args.lse);
      for (const TensorView& gradient : {args.dq, args.dk, args.dv}) {
        check_output(gradient, args.accumulate);
      }
      expect_prepared(args);
      inner_->backward(args);
    }
    std::int64_t keep_rows(std::int64_t max_bytes) override {
      const std::int64_t bytes = kernel_.bytes_of_rows_;
      if (bytes == 0 || bytes > max_bytes) return 0;
      ++kernel_.rows_kept;
      return bytes;
    }
    void prepare_rows(const BackwardArgs& args) override {
      LONGCA_CHECK(kernel_.bytes_of_rows_ > 0 && !prepared_, "rows prepared in vain");
      prepared_ = {args.key_gradients, values(args)};
    }
    std::int64_t workspace_bytes() const override {
      return says_workspace_ ? inner_->workspace_bytes() : 0;
    }

   private:
    void forward_merging(const ForwardArgs& args) {
      LONGCA_CHECK(!can_.merges_earlier_dims.empty() && !args.accumulate,
                   "no earlier result is merged");
      check_call(false, {args.earlier.o}, args.earlier.lse);
      ++kernel_.merged;
      const TensorView& o = args.o;
      const HostTensor here(o.dtype, o.tokens, o.heads, o.dim);
      std::vector<float> lse(static_cast<std::size_t>(o.tokens * o.heads));
      ForwardArgs own = args;
      own.earlier = {};
      own.o = here.view();
      own.lse = {lse.data(), o.heads, o.tokens, o.tokens};
      inner_->forward(own);
      // The earlier result is only read: merge_all takes views that could be written.
      const ConstTensorView& e = args.earlier.o;
      const TensorView before{const_cast<void*>(e.data),
                              e.dtype,
                              e.tokens,
                              e.heads,
                              e.dim,
                              e.token_stride,
                              e.head_stride};
      const ConstLseView& l = args.earlier.lse;
      const LseView before_lse{const_cast<float*>(l.data), l.heads, l.tokens, l.head_stride};
      const Partial parts[] = {{before, before_lse}, {own.o, own.lse}};
      step_math(DeviceKind::cpu).merge_all(parts, {}, o, args.lse, nullptr);
    }
    void backward_adding(const BackwardArgs& args) {
      LONGCA_CHECK(can_.adds_to_dq && !args.accumulate, "nothing is added to dq");
      check_output(args.dq, false);
      ++kernel_.added;
      const TensorView& dq = args.dq;
      const HostTensor here(dq.dtype, dq.tokens, dq.heads, dq.dim);
      BackwardArgs own = args;
      own.held = {};
      own.dq = here.view();
      backward(own);
      StepMath& math = step_math(DeviceKind::cpu);
      const Box held{args.held.rows, args.held.heads};
      const TensorView sum = box_of(own.dq, held);
      const ConstTensorView parts[] = {sum, box_of(dq, held)};
      math.sum_all(parts, {}, sum, nullptr);
      math.copy(own.dq, dq, nullptr);
    }
    /// Adds to all three gradients.
    void backward_summing(const BackwardArgs& args) {
      check_call(args.accumulate,
                 {args.dout, args.q, args.k, args.v, args.o, args.dq, args.dk, args.dv}, args.lse);
      LONGCA_CHECK(summing_ != nullptr && !args.accumulate, "gradients of keys are to be summed");
      expect_prepared(args);
      check_output(args.dq, false);
      check_output(args.dk, true);
      check_output(args.dv, true);
      StepMath& math = step_math(DeviceKind::cpu);
      const TensorView dq = args.dq;
      const HostTensor sum(DType::float32, dq.tokens, dq.heads, dq.dim);
      math.clear(sum.view(), nullptr);
      if (args.key_gradients == KeyGradients::overwrite_float32) {
        math.clear(args.dk, nullptr);
        math.clear(args.dv, nullptr);
      }
      BackwardArgs adding = args;
      adding.dq = sum.view();
      adding.accumulate = true;
      adding.key_gradients = KeyGradients::as_dq;
      summing_->backward(adding);
      math.convert(sum.view(), dq, nullptr);
    }
    void check_call(bool accumulate, std::initializer_list<ConstTensorView> tensors,
                    const ConstLseView& lse) const {
      LONGCA_CHECK(accumulate == problem_.accumulate, "planned otherwise");
      for (const ConstTensorView& tensor : tensors) {
        LONGCA_CHECK(can_.strided || is_contiguous(tensor), "a tensor with gaps");
      }
      LONGCA_CHECK(can_.strided || is_contiguous(lse), "an lse with gaps");
    }
    void check_output(const TensorView& output, bool float32) const {
      LONGCA_CHECK(output.dtype == (float32 ? DType::float32 : problem_.dtype), "an output of {}",
                   to_string(output.dtype));
    }
    /// All that row terms are made of.
    static std::vector<std::byte> values(const BackwardArgs& args) {
      std::vector<std::byte> all;
      const auto append = [&](const void* row, std::int64_t bytes) {
        const auto* begin = static_cast<const std::byte*>(row);
        all.insert(all.end(), begin, begin + bytes);
      };
      for (const ConstTensorView& tensor : {args.dout, args.o}) {
        const std::int64_t size = size_of(tensor.dtype);
        for (std::int64_t t = 0; t < tensor.tokens; ++t) {
          for (std::int64_t h = 0; h < tensor.heads; ++h) {
            const std::int64_t first = t * tensor.token_stride + h * tensor.head_stride;
            append(static_cast<const std::byte*>(tensor.data) + first * size, tensor.dim * size);
          }
        }
      }
      for (std::int64_t h = 0; h < args.lse.heads; ++h) {
        append(args.lse.head(h), args.lse.tokens * 4);
      }
      return all;
    }
    void expect_prepared(const BackwardArgs& args) {
      if (!prepared_) return;
      LONGCA_CHECK(prepared_->first == args.key_gradients && prepared_->second == values(args),
                   "a call of other rows than were prepared");
      prepared_.reset();
      ++kernel_.rows_prepared;
    }
    const PlainKernel& kernel_;
    const Capabilities& can_;
    Problem problem_;
    bool says_workspace_;
    std::unique_ptr<longca::Plan> inner_;
    std::unique_ptr<longca::Plan> summing_;  ///< of a kernel that sums keys
    std::optional<std::pair<KeyGradients, std::vector<std::byte>>> prepared_;
  };

  std::unique_ptr<Kernel> inner_ = make_flash_cpu();
  Capabilities capabilities_;
  bool sums_keys_ = false;
  std::int64_t bytes_of_rows_ = 0;
  bool says_workspace_ = true;
};

}  // namespace longca::test
