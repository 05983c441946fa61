#include "attention/inputs/inputs.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "gpu/gpu_test.h"

namespace longca::testing {
namespace {

class CudaInputs : public GpuTest {
 protected:
  static std::vector<unsigned char> bytes_of(const Tensor& tensor, DeviceKind device) {
    std::vector<unsigned char> bytes(static_cast<std::size_t>(tensor.bytes()));
    Device::get(device).copy(bytes.data(), tensor.view().data, tensor.bytes());
    return bytes;
  }

  /// Of one document, and of two.
  static void expect_equal(Problem problem, std::uint64_t seed, std::string_view style_name) {
    const InputStyle style = parse_input_style(style_name).value();
    for (const std::int64_t first : {problem.tokens_k, problem.tokens_k / 2}) {
      const std::array documents{first, problem.tokens_k - first};
      problem.device = DeviceKind::cpu;
      const Inputs host = make_inputs(problem, seed, style, documents);
      problem.device = DeviceKind::cuda;
      const Inputs device = make_inputs(problem, seed, style, documents);
      for (const auto tensor : {&Inputs::q, &Inputs::k, &Inputs::v, &Inputs::dout}) {
        EXPECT_EQ(bytes_of(device.*tensor, DeviceKind::cuda),
                  bytes_of(host.*tensor, DeviceKind::cpu))
            << problem.tokens_q << " tokens, " << to_string(problem.dtype) << ", seed " << seed
            << ", " << style_name;
      }
    }
  }
};

struct Shape {
  std::int64_t tokens_q, tokens_k;
  int heads_q, heads_k, head_dim;
};

TEST_F(CudaInputs, EqualThoseOfTheCpuToTheBit) {
  // One value, less than a counter's four, across chunks, and millions: the tails of the normal.
  const Shape shapes[] = {{1, 3, 1, 1, 1},
                          {33, 71, 6, 2, 40},
                          {100, 7, 3, 1, 41},
                          {0, 5, 2, 1, 8},
                          {4096, 65, 8, 4, 128}};
  for (const Shape& shape : shapes) {
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{42}, ~std::uint64_t{0}}) {
        Problem problem;
        problem.tokens_q = shape.tokens_q;
        problem.tokens_k = shape.tokens_k;
        problem.heads_q = shape.heads_q;
        problem.heads_k = shape.heads_k;
        problem.head_dim = shape.head_dim;
        problem.dtype = dtype;
        for (const std::string_view name : input_style_names()) expect_equal(problem, seed, name);
      }
    }
  }
}

TEST_F(CudaInputs, RowsOfAShardEqualThoseOfTheCpu) {
  const std::vector<Range> ranges{{1, 2}, {16, 19}, {350, 700}};
  constexpr std::int64_t kRows = 354 + 2;  // two of padding
  for (const std::int64_t dim : {41, 128}) {
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      const Tensor host(Device::get(DeviceKind::cpu).memory(), dtype, kRows, 3, dim);
      const Tensor device(gpu().memory(), dtype, kRows, 3, dim);
      const std::array<std::int64_t, 3> documents{17, 1, 682};
      for (const InputStyle style : {InputStyle::normal, InputStyle::clustered, InputStyle::peaked,
                                     InputStyle::sink, InputStyle::rising}) {
        const InputLaw law{style, 1, documents};
        draw_rows(DeviceKind::cpu, host.view(), 5, InputTensor::k, ranges, law);
        draw_rows(DeviceKind::cuda, device.view(), 5, InputTensor::k, ranges, law);
        EXPECT_EQ(bytes_of(device, DeviceKind::cuda), bytes_of(host, DeviceKind::cpu)) << dim;
      }
    }
  }
}

TEST_F(CudaInputs, LieInTheTrackersMemory) {
  const std::int64_t before = gpu().memory().bytes_in_use();
  Problem problem;
  problem.tokens_q = problem.tokens_k = 100;
  problem.dtype = DType::bfloat16;
  problem.device = DeviceKind::cuda;
  const Inputs inputs = make_inputs(problem, 1);
  EXPECT_EQ(gpu().memory().bytes_in_use() - before, inputs.bytes());
}

}  // namespace
}  // namespace longca::testing
