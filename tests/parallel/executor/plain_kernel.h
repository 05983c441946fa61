#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/cpu/kernels.h"
#include "core/error.h"
#include "parallel/executor/staging.h"
#include "parallel/executor/step_math.h"

namespace longca::test {

/// As Capabilities has them.
struct Abilities {
  bool accumulate = true;
  bool sums_keys = false;
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
      inner_->forward(args);
    }
    void backward(const BackwardArgs& args) override {
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
