// What our own kernels ask of the tensors of a call, whose data they do not read here.
#include "attention/kernels/common/attention_args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "attention/api/kernel.h"
#include "core/error.h"

namespace longca {
namespace {

constexpr int kTokens = 4;
constexpr int kHeads = 2;
constexpr int kDim = 64;

class AttentionArgsOf : public ::testing::Test {
 protected:
  AttentionArgsOf() {
    problem_.tokens_q = problem_.tokens_k = kTokens;
    problem_.heads_q = problem_.heads_k = kHeads;
    problem_.head_dim = kDim;
    args_.q = args_.k = args_.v = view();
    args_.o = view();
  }

  TensorView view() {
    return {memory_, DType::bfloat16, kTokens, kHeads, kDim, kHeads * kDim, kDim};
  }
  std::string refusal() const {
    try {
      attention_args("slice", problem_, args_);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  alignas(16) std::byte memory_[64];
  Problem problem_;
  ForwardArgs args_;
};

TEST_F(AttentionArgsOf, TakesRowsThatBeginAtMultiplesOf16Bytes) {
  args_.k.token_stride = 8;
  args_.v.head_stride = 1032;
  EXPECT_EQ(refusal(), "");
}

TEST_F(AttentionArgsOf, RefusesOthersByTheirName) {
  args_.k.data = memory_ + 2;
  EXPECT_THAT(refusal(), ::testing::HasSubstr("rows of slice's k begin at multiples of 16 bytes"));
  args_.k = view();
  args_.o.token_stride = 132;
  EXPECT_THAT(refusal(), ::testing::HasSubstr("strides of 132 and 64 elements: copy it"));
  args_.o = view();
  args_.v.head_stride = 68;
  EXPECT_THAT(refusal(), ::testing::HasSubstr("slice's v"));
}

TEST_F(AttentionArgsOf, ReadsNoStrideOfAnExtentOf1) {
  args_.q.tokens = 1;
  args_.q.token_stride = 3;
  args_.k.heads = 1;
  args_.k.head_stride = -1;
  EXPECT_EQ(refusal(), "");
}

}  // namespace
}  // namespace longca
