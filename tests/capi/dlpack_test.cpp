#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <longca.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "capi/handle.h"

// The structures of DLPack's dlpack.h, written here from its documentation.
namespace {

struct Device {
  std::int32_t type, id;
};
struct DataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct Plain {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

}  // namespace

struct DLManagedTensor {
  Plain dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  std::uint32_t version[2];
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
  Plain dl_tensor;
};

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

constexpr DataType kFloat32{2, 32, 1};

/// A float32 tensor on the CPU; its deleter must not be called.
struct Dlpack {
  std::vector<std::int64_t> shape, strides;
  DLManagedTensor old{};
  DLManagedTensorVersioned versioned{};

  Dlpack(std::vector<float>& data, std::vector<std::int64_t> s, std::vector<std::int64_t> st = {},
         std::size_t offset = 0)
      : shape(std::move(s)), strides(std::move(st)) {
    old.dl_tensor = {data.data(),
                     {1, 0},
                     static_cast<std::int32_t>(shape.size()),
                     kFloat32,
                     shape.data(),
                     strides.empty() ? nullptr : strides.data(),
                     offset * sizeof(float)};
    old.deleter = [](DLManagedTensor*) { ADD_FAILURE() << "freed"; };
    versioned.version[0] = 1;
    versioned.version[1] = 99;  // a later minor version has the same layout
    versioned.deleter = [](DLManagedTensorVersioned*) { ADD_FAILURE() << "freed"; };
    versioned.dl_tensor = old.dl_tensor;
  }
  Dlpack(const Dlpack&) = delete;
};

longca_problem small_problem() {
  longca_problem problem = LONGCA_PROBLEM_INIT;
  problem.heads_q = 4;
  problem.heads_k = 2;
  problem.head_dim = 8;
  return problem;
}

TEST(CapiDlpack, ATensorLiesWhereItLay) {
  std::vector<float> data(4096);
  const longca_problem problem = small_problem();
  longca_tensor t{};
  Dlpack strided(data, {10, 4, 8}, {64, 16, 1}, 5);
  ASSERT_EQ(longca_tensor_from_dlpack(&strided.old, &problem, &t), LONGCA_OK)
      << longca_last_error();
  const auto expect = [&](std::size_t offset, std::int64_t token_stride, std::int64_t head_stride) {
    EXPECT_EQ(t.data, data.data() + offset);
    EXPECT_EQ(t.tokens, 10);
    EXPECT_EQ(t.heads, 4);
    EXPECT_EQ(t.dim, 8);
    EXPECT_EQ(t.token_stride, token_stride);
    EXPECT_EQ(t.head_stride, head_stride);
  };
  expect(5, 64, 16);
  t = {};
  ASSERT_EQ(longca_tensor_from_dlpack_versioned(&strided.versioned, &problem, 1, &t), LONGCA_OK);
  expect(5, 64, 16);
  Dlpack contiguous(data, {10, 4, 8});
  ASSERT_EQ(longca_tensor_from_dlpack(&contiguous.old, &problem, &t), LONGCA_OK);
  expect(0, 32, 8);

  longca_lse lse{};
  Dlpack rows(data, {4, 10}, {12, 1}, 3);
  ASSERT_EQ(longca_lse_from_dlpack(&rows.old, &problem, &lse), LONGCA_OK) << longca_last_error();
  EXPECT_EQ(lse.data, data.data() + 3);
  EXPECT_EQ(lse.heads, 4);
  EXPECT_EQ(lse.tokens, 10);
  EXPECT_EQ(lse.head_stride, 12);
  ASSERT_EQ(longca_lse_from_dlpack_versioned(&rows.versioned, &problem, 1, &lse), LONGCA_OK);
  EXPECT_EQ(lse.head_stride, 12);
}

/// q, k and v interleaved in one projection: o is what plain pointers to copies give.
TEST(CapiDlpack, AttentionOfSlicesOfAProjection) {
  constexpr std::int64_t kTokens = 30;
  const longca_problem problem = small_problem();
  std::vector<float> projection(kTokens * 64);
  for (std::size_t i = 0; i < projection.size(); ++i) {
    projection[i] = std::sin(static_cast<float>(i * i % 1000));
  }
  const MaskHandle mask = packed_documents({0, 11, kTokens});
  longca_plan* made = nullptr;
  ASSERT_EQ(longca_plan_create(&problem, mask.get(), &made), LONGCA_OK) << longca_last_error();
  const PlanHandle plan = own(made);

  const auto run = [&](const longca_tensor& q, const longca_tensor& k, const longca_tensor& v) {
    std::vector<float> o(kTokens * 32, NAN);
    std::vector<float> lse(4 * kTokens, NAN);
    longca_forward_arguments a{};
    a.q = q, a.k = k, a.v = v;
    Dlpack to(o, {kTokens, 4, 8});
    Dlpack to_lse(lse, {4, kTokens});
    EXPECT_EQ(longca_tensor_from_dlpack_versioned(&to.versioned, &problem, 1, &a.o), LONGCA_OK);
    EXPECT_EQ(longca_lse_from_dlpack(&to_lse.old, &problem, &a.lse), LONGCA_OK);
    EXPECT_EQ(longca_forward(plan.get(), &a), LONGCA_OK) << longca_last_error();
    o.insert(o.end(), lse.begin(), lse.end());
    return o;
  };
  const auto dlpack = [&](std::int64_t heads, std::size_t offset) {
    Dlpack from(projection, {kTokens, heads, 8}, {64, 8, 1}, offset);
    longca_tensor t{};
    EXPECT_EQ(longca_tensor_from_dlpack(&from.old, &problem, &t), LONGCA_OK);
    return t;
  };
  std::array<std::vector<float>, 3> copies;
  const auto copied = [&](std::size_t which, std::int64_t heads, std::size_t offset) {
    for (std::size_t token = 0; token < kTokens; ++token) {
      const auto from = projection.begin() + static_cast<std::ptrdiff_t>(token * 64 + offset);
      copies.at(which).insert(copies.at(which).end(), from, from + heads * 8);
    }
    return longca_tensor{copies.at(which).data(), kTokens, heads, 8, heads * 8, 8};
  };
  EXPECT_EQ(run(dlpack(4, 0), dlpack(2, 32), dlpack(2, 48)),
            run(copied(0, 4, 0), copied(1, 2, 32), copied(2, 2, 48)));
}

/// The strides of dimensions of 1 mean nothing: PyTorch has any there.
TEST(CapiDlpack, OneHeadMayHaveAnyHeadStride) {
  std::vector<float> data(64), o(64), rows(8, NAN);
  longca_problem problem = LONGCA_PROBLEM_INIT;
  problem.head_dim = 8;
  const MaskHandle mask = packed_documents({0, 8});
  longca_plan* made = nullptr;
  ASSERT_EQ(longca_plan_create(&problem, mask.get(), &made), LONGCA_OK) << longca_last_error();
  const PlanHandle plan = own(made);
  longca_forward_arguments a{};
  Dlpack from(data, {8, 1, 8}, {8, -5, 1});
  Dlpack to(o, {8, 1, 8}, {8, 1, 1});
  Dlpack to_lse(rows, {1, 8}, {1, 1});
  ASSERT_EQ(longca_tensor_from_dlpack(&from.old, &problem, &a.q), LONGCA_OK);
  a.k = a.v = a.q;
  ASSERT_EQ(longca_tensor_from_dlpack(&to.old, &problem, &a.o), LONGCA_OK);
  ASSERT_EQ(longca_lse_from_dlpack(&to_lse.old, &problem, &a.lse), LONGCA_OK);
  EXPECT_EQ(longca_forward(plan.get(), &a), LONGCA_OK) << longca_last_error();
  EXPECT_FLOAT_EQ(rows[7], std::log(8.0F));
  rows.assign(8, NAN);
  a.lse.head_stride = 0;
  EXPECT_EQ(longca_forward(plan.get(), &a), LONGCA_OK) << longca_last_error();
  EXPECT_FLOAT_EQ(rows[7], std::log(8.0F));
}

TEST(CapiDlpack, WhatDoesNotFitIsNamed) {
  std::vector<float> data(4096);
  const longca_problem problem = small_problem();
  longca_tensor t{};
  const auto refused = [&](auto change) -> std::string {
    Dlpack tensor(data, {10, 4, 8}, {32, 8, 1});
    change(tensor.old.dl_tensor);
    EXPECT_EQ(longca_tensor_from_dlpack(&tensor.old, &problem, &t), LONGCA_INVALID_ARGUMENT);
    return longca_last_error();
  };
  EXPECT_EQ(refused([](Plain& p) { p.ndim = 2; }),
            "the DLPack tensor has 2 dimensions: [tokens, heads, dim] is meant");
  EXPECT_THAT(refused([](Plain& p) { p.device.type = 2; }),
              HasSubstr("is on DLPack's device type 2"));
  EXPECT_EQ(refused([](Plain& p) {
              p.dtype = {4, 16, 1};
            }),
            "the DLPack tensor has bfloat16, not float32");
  EXPECT_EQ(refused([](Plain& p) {
              p.dtype = {0, 64, 1};
            }),
            "the DLPack tensor has type 0:64, not float32");
  EXPECT_THAT(refused([](Plain& p) { p.dtype.lanes = 4; }), HasSubstr("4 lanes"));
  EXPECT_THAT(refused([](Plain& p) { p.strides[2] = 2; }),
              HasSubstr("stride 2 in its last dimension"));
  EXPECT_EQ(refused([](Plain& p) { p.strides[0] = -32; }),
            "dimension 0 of the DLPack tensor has stride -32: at least 0");
  EXPECT_EQ(refused([](Plain& p) { p.shape[1] = -4; }),
            "dimension 1 of the DLPack tensor is -4: at least 0, at most 1073741824");
  EXPECT_EQ(refused([](Plain& p) { p.byte_offset = 6; }),
            "the DLPack tensor has byte_offset 6: a multiple of 4, its element's bytes");
  EXPECT_EQ(refused([](Plain& p) { p.shape = nullptr; }), "the DLPack tensor's shape is NULL");
  EXPECT_EQ(longca_tensor_from_dlpack(nullptr, &problem, &t), LONGCA_INVALID_ARGUMENT);
  EXPECT_STREQ(longca_last_error(), "from is NULL");
}

TEST(CapiDlpack, ThePlaceOnAGpuIsThatOfTheProcess) {
  std::vector<float> data(4096);
  longca_problem problem = small_problem();
  problem.device = LONGCA_CUDA;
  problem.dtype = LONGCA_BFLOAT16;
  Dlpack tensor(data, {10, 4, 8});
  tensor.old.dl_tensor.dtype = {4, 16, 1};
  longca_tensor t{};
  EXPECT_EQ(longca_tensor_from_dlpack(&tensor.old, &problem, &t), LONGCA_INVALID_ARGUMENT);
  EXPECT_THAT(longca_last_error(),
              HasSubstr("device type 1, the problem on LONGCA_CUDA, which is 2 there"));
  tensor.old.dl_tensor.device = {2, 0};
  EXPECT_EQ(longca_tensor_from_dlpack(&tensor.old, &problem, &t), LONGCA_OK);
  tensor.old.dl_tensor.device = {2, 7};
  EXPECT_EQ(longca_tensor_from_dlpack(&tensor.old, &problem, &t), LONGCA_INVALID_ARGUMENT);
  EXPECT_THAT(longca_last_error(), HasSubstr("on GPU 7, this process uses GPU 0"));
}

TEST(CapiDlpack, VersionsAndReadOnlyTensorsAreTold) {
  std::vector<float> data(4096);
  const longca_problem problem = small_problem();
  Dlpack tensor(data, {10, 4, 8});
  longca_tensor t{};
  tensor.versioned.flags = 1;
  EXPECT_EQ(longca_tensor_from_dlpack_versioned(&tensor.versioned, &problem, 0, &t), LONGCA_OK);
  EXPECT_EQ(longca_tensor_from_dlpack_versioned(&tensor.versioned, &problem, 1, &t),
            LONGCA_INVALID_ARGUMENT);
  EXPECT_THAT(longca_last_error(), HasSubstr("read-only"));
  std::memset(&tensor.versioned.dl_tensor, 0xff, sizeof(Plain));  // of version 2 nothing is known
  tensor.versioned.version[0] = 2;
  EXPECT_EQ(longca_tensor_from_dlpack_versioned(&tensor.versioned, &problem, 0, &t),
            LONGCA_UNSUPPORTED);
  EXPECT_STREQ(longca_last_error(),
               "the DLPack tensor has version 2.99: this library knows version 1");
}

}  // namespace
}  // namespace longca::testing
