#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "attention/kernels/slice/slice.h"
#include "gpu/kernel_test.h"
#include "mask/generators.h"

namespace longca::testing {
namespace {

/// The nearest float16, of a number in its range.
std::uint16_t half_of(float x) {
  const float magnitude = std::abs(x);
  const int exponent = magnitude == 0 ? -14 : std::max(std::ilogb(magnitude), -14);
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  return static_cast<std::uint16_t>((std::signbit(x) ? 0x8000 : 0) + (exponent + 14) * 1024 +
                                    steps);
}

float of_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int steps = bits & 1023;
  const float magnitude = exponent == 31 ? (steps == 0 ? std::numeric_limits<float>::infinity()
                                                       : std::numeric_limits<float>::quiet_NaN())
                          : exponent == 0
                              ? std::ldexp(static_cast<float>(steps), -24)
                              : std::ldexp(static_cast<float>(1024 + steps), exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/// Float16 by way of bfloat16: inputs of 8 bits are exact in both, and a result of float16 that is
/// rounded to bfloat16 must stand where one of bfloat16 does.
class SliceFloat16 : public KernelTest, public ::testing::WithParamInterface<SlicePath> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    if (GetParam() == SlicePath::sm90 && gpu().properties().architecture != 90) {
      GTEST_SKIP() << "the " << gpu().properties().name << " is not of compute capability 9.0";
    }
    kernel_ = make_slice(GetParam());
    const auto& dtypes = kernel_->capabilities().dtypes;
    if (std::ranges::find(dtypes, DType::float16) == dtypes.end()) {
      GTEST_SKIP() << "this build has no float16: LONGCA_INSTANTIATIONS is few";
    }
  }

  static Tensor upload(const Tensor& host) {
    const TensorView view = host.view();
    Tensor tensor(gpu().memory(), DType::float16, view.tokens, view.heads, view.dim);
    const auto* values = static_cast<const BFloat16*>(view.data);
    std::vector<std::uint16_t> bits(static_cast<std::size_t>(host.bytes() / 2));
    std::transform(values, values + bits.size(), bits.begin(),
                   [](BFloat16 x) { return half_of(static_cast<float>(x)); });
    gpu().copy(tensor.view().data, bits.data(), tensor.bytes());
    return tensor;
  }
  static void download(const Tensor& from, const Tensor& host) {
    std::vector<std::uint16_t> bits(static_cast<std::size_t>(from.bytes() / 2));
    gpu().copy(bits.data(), from.view().data, from.bytes());
    std::transform(bits.begin(), bits.end(), static_cast<BFloat16*>(host.view().data),
                   [](std::uint16_t x) { return BFloat16(of_half(x)); });
  }
};

std::string path_name(const ::testing::TestParamInfo<SlicePath>& info) {
  return info.param == SlicePath::sm90 ? "sm90" : "sm80";
}
INSTANTIATE_TEST_SUITE_P(Paths, SliceFloat16, ::testing::Values(SlicePath::sm90, SlicePath::sm80),
                         path_name);

TEST_P(SliceFloat16, BothPasses) {
  for (const int dim : kernel_->capabilities().head_dims) {
    for (const std::string name : {"causal", "shared_question", "block_sparse"}) {
      SCOPED_TRACE(name + " of " + std::to_string(dim) + " dimensions");
      Problem host_problem = problem_of(500, 500, 8, 2);
      host_problem.head_dim = dim;
      host_problem.device = DeviceKind::cpu;
      Problem problem = host_problem;
      problem.device = DeviceKind::cuda;
      problem.dtype = DType::float16;
      MaskSpec spec;
      spec.name = name;
      spec.tokens = 500;
      spec.lengths = "pile";
      spec.heads_q = 8;
      spec.heads_k = 2;
      spec.block = 64;
      const Mask mask = generate_mask(spec).mask;
      ASSERT_EQ(kernel_->supports(problem, mask).reason, "");
      const Inputs inputs = make_inputs(host_problem, kSeed);
      const Outputs host(host_problem);
      const Outputs device(problem);
      const Tensor q = upload(inputs.q), k = upload(inputs.k), v = upload(inputs.v),
                   dout = upload(inputs.dout);
      const auto plan = kernel_->plan(problem, mask);
      ForwardArgs forward;
      forward.q = q.view();
      forward.k = k.view();
      forward.v = v.view();
      forward.o = device.o.view();
      forward.lse = device.lse.view();
      forward.stream = gpu().stream();
      plan->forward(forward);
      BackwardArgs backward = backward_args(inputs, device);
      backward.q = q.view();
      backward.k = k.view();
      backward.v = v.view();
      backward.dout = dout.view();
      backward.stream = gpu().stream();
      plan->backward(backward);
      gpu().synchronize();
      for (const auto tensor : {&Outputs::o, &Outputs::dq, &Outputs::dk, &Outputs::dv}) {
        download(device.*tensor, host.*tensor);
      }
      gpu().copy(host.lse.view().data, device.lse.view().data, host.lse.bytes());
      const Reference reference(host_problem, mask, inputs, {.seconds = 1e6}, kSeed);
      const ConstLseView lse(host.lse.view());
      const Verdict first = reference.check_forward(host.o.view(), &lse);
      EXPECT_TRUE(first.ok) << first.reason;
      const Verdict second = reference.check_backward(backward_args(inputs, host));
      EXPECT_TRUE(second.ok) << second.reason;
    }
  }
}

}  // namespace
}  // namespace longca::testing
