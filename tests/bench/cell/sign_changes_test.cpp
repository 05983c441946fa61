#include "bench/cell/sign_changes.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "bench/cell/timed_kernel.h"

namespace longca::testing {
namespace {

using KernelCase = std::tuple<std::string, DType, Pass, int>;

class SignChangesOf : public ::testing::TestWithParam<KernelCase> {
 protected:
  SignChangesOf()
      : kernel(std::get<0>(GetParam()), std::get<1>(GetParam()), std::get<2>(GetParam()),
               std::get<3>(GetParam())),
        signs(TimedKernel::device(), kernel.tensors(), kernel.pass, {0, 1}, 1) {
    kernel.call();
  }
  TimedKernel kernel;
  SignChanges signs;
};

TEST_P(SignChangesOf, ResultsFollowToTheBit) {
  const std::uint64_t results = kernel.results();
  for (int i = 0; i < 30; ++i) {
    i % 3 == 0 ? signs.draw() : signs.draw_more();
    kernel.call();
    signs.follow();
    EXPECT_EQ(kernel.results(), results);
  }
}

TEST_P(SignChangesOf, ResultsOfTheCallBeforeAreNotThoseOfTheNext) {
  const std::uint64_t results = kernel.results();
  for (int i = 0; i < 30; ++i) {
    signs.draw();
    signs.follow();  // as if a call had written nothing
    EXPECT_NE(kernel.results(), results);
    kernel.call();
  }
}

TEST_P(SignChangesOf, ResultsFollowBackThoughTheInputsHaveComeBack) {
  for (int i = 0; i < 10; ++i) {
    i % 3 == 0 ? signs.draw() : signs.draw_more();
    kernel.call();
    const std::uint64_t left = kernel.results();
    signs.follow();
    if (i % 2 == 1) signs.undo();
    signs.follow_back();
    EXPECT_EQ(kernel.results(), left);
    signs.catch_up();
    const std::uint64_t caught_up = kernel.results();
    kernel.call();
    EXPECT_EQ(kernel.results(), caught_up);
  }
}

TEST_P(SignChangesOf, InputsAreOthersEachTimeAndComeBack) {
  const std::uint64_t before = kernel.input_bits();
  std::set<std::uint64_t> seen{before};
  for (int i = 0; i < 20; ++i) {
    signs.draw();
    seen.insert(kernel.input_bits());
    signs.draw_more();
    seen.insert(kernel.input_bits());
  }
  EXPECT_GT(seen.size(), 30U);
  signs.undo();
  EXPECT_EQ(kernel.input_bits(), before);
}

INSTANTIATE_TEST_SUITE_P(Kernels, SignChangesOf,
                         ::testing::Combine(::testing::Values("naive", "flash"),
                                            ::testing::Values(DType::float32, DType::bfloat16),
                                            ::testing::ValuesIn(kPasses), ::testing::Values(0, 5)),
                         [](const auto& name) {
                           return std::get<0>(name.param) + "_" +
                                  std::string(to_string(std::get<1>(name.param))) + "_" +
                                  std::string(to_string(std::get<2>(name.param))) +
                                  (std::get<3>(name.param) == 0 ? "" : "_shorter_v");
                         });

TEST(SignChanges, OnlyHeadsThatAreNamedChange) {
  const TimedKernel kernel("naive", DType::float32, Pass::forward);
  SignChanges signs(TimedKernel::device(), kernel.tensors(), Pass::forward, {1}, 3);
  const auto first_head = [&] {
    std::vector<float> values;
    for (const TensorView& t : {kernel.tensors().k, kernel.tensors().v}) {
      for (std::int64_t token = 0; token < t.tokens; ++token) {
        values.insert(values.end(), t.row<float>(token, 0), t.row<float>(token, 0) + t.dim);
      }
    }
    return values;
  };
  const std::vector<float> before = first_head();
  for (int i = 0; i < 50; ++i) signs.draw_more();
  signs.draw();
  EXPECT_EQ(first_head(), before);
}

TEST(SignChanges, OneColumnOfOneHeadStillChanges) {
  HostTensor q(DType::float32, 1, 1, 1), k(DType::float32, 1, 1, 1), v(DType::float32, 1, 1, 1);
  for (const HostTensor* t : {&q, &k, &v}) *t->view().row<float>(0, 0) = 1;
  PassTensors tensors;
  tensors.q = q.view();
  tensors.k = k.view();
  tensors.v = v.view();
  SignChanges signs(TimedKernel::device(), tensors, Pass::forward, {0}, 1);
  float before = 1;
  for (int i = 0; i < 4; ++i) {
    signs.draw();
    EXPECT_EQ(*v.view().row<float>(0, 0), -before);
    before = -before;
  }
}

}  // namespace
}  // namespace longca::testing
