#include "parallel/executor/step_math.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gpu/gpu_test.h"

// The GPU's arithmetic between steps against the CPU's, which has tests of its own.

namespace longca::testing {
namespace {

/// A tensor with gaps between rows and tokens, on the host and on the GPU alike. Gaps hold the
/// values they began with, so that a write past a row shows.
class TwinTensor {
 public:
  TwinTensor(DType dtype, std::int64_t tokens, std::int64_t heads, std::int64_t dim,
             std::int64_t gap, std::mt19937& random)
      : host_(dtype, tokens, heads, dim + gap),
        gpu_(Device::get(DeviceKind::cuda).memory(), dtype, tokens, heads, dim + gap),
        dim_(dim) {
    const std::int64_t count = tokens * heads * (dim + gap);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < count; ++i) {
      if (dtype == DType::float32) {
        static_cast<float*>(host_.view().data)[i] = normal(random);
      } else {
        static_cast<BFloat16*>(host_.view().data)[i] = BFloat16(normal(random));
      }
    }
    Device::get(DeviceKind::cuda).copy(gpu_.view().data, host_.view().data, host_.bytes());
  }
  TensorView host() const { return cut(host_.view()); }
  TensorView gpu() const { return cut(gpu_.view()); }

  /// Every element, gaps included, of both.
  std::vector<float> host_values() const { return values(host_.view().data); }
  std::vector<float> gpu_values() const {
    HostBuffer copied(gpu_.bytes());
    Device::get(DeviceKind::cuda).copy(copied.data(), gpu_.view().data, gpu_.bytes());
    return values(copied.data());
  }

 private:
  TensorView cut(TensorView view) const {
    view.dim = dim_;
    return view;
  }
  std::vector<float> values(const void* data) const {
    std::vector<float> result;
    for (std::int64_t i = 0; i < host_.bytes() / size_of(host_.view().dtype); ++i) {
      result.push_back(host_.view().dtype == DType::float32
                           ? static_cast<const float*>(data)[i]
                           : static_cast<float>(static_cast<const BFloat16*>(data)[i]));
    }
    return result;
  }

  HostTensor host_;
  Tensor gpu_;
  std::int64_t dim_;
};

class TwinLse {
 public:
  TwinLse(std::int64_t heads, std::int64_t tokens, std::mt19937& random)
      : host_(heads, tokens), gpu_(Device::get(DeviceKind::cuda).memory(), heads, tokens) {
    std::normal_distribution<float> normal(0, 3);
    for (std::int64_t i = 0; i < heads * tokens; ++i) {
      // A third of the rows has seen no key.
      host_.view().data[i] =
          random() % 3 == 0 ? -std::numeric_limits<float>::infinity() : normal(random);
    }
    Device::get(DeviceKind::cuda).copy(gpu_.view().data, host_.view().data, host_.bytes());
  }
  const LseView& host() const { return host_.view(); }
  const LseView& gpu() const { return gpu_.view(); }
  std::vector<float> host_values() const { return {host().data, host().data + count()}; }
  std::vector<float> gpu_values() const {
    std::vector<float> result(count());
    Device::get(DeviceKind::cuda).copy(result.data(), gpu().data, gpu_.bytes());
    return result;
  }

 private:
  std::size_t count() const { return static_cast<std::size_t>(host().heads * host().tokens); }
  HostLse host_;
  Lse gpu_;
};

struct Shape {
  std::int64_t tokens, heads, dim, gap;
};
constexpr Shape kShapes[] = {{1, 1, 1, 0},    {5, 3, 128, 0},  {37, 8, 128, 128}, {64, 2, 64, 0},
                             {9, 5, 96, 8},   {7, 3, 80, 3},   {11, 2, 33, 0},    {300, 4, 256, 0},
                             {3, 64, 128, 0}, {1000, 1, 16, 4}};
constexpr DType kDTypes[] = {DType::float32, DType::bfloat16};

class StepMathTest : public GpuTest {
 protected:
  static Stream stream() { return gpu().stream(); }
  static StepMath& cpu_math() { return cpu_step_math(); }
  static StepMath& gpu_math() { return cuda_step_math(); }
  TwinTensor tensor(DType dtype, const Shape& shape) {
    return {dtype, shape.tokens, shape.heads, shape.dim, shape.gap, random_};
  }
  TwinLse lse(const Shape& shape) { return {shape.heads, shape.tokens, random_}; }
  /// A partial result as kernels make them: o = 0 in rows without keys.
  static void clear_unseen(const TwinTensor& o, const TwinLse& lse) {
    for (std::int64_t h = 0; h < lse.host().heads; ++h) {
      for (std::int64_t t = 0; t < lse.host().tokens; ++t) {
        if (std::isfinite(lse.host().head(h)[t])) continue;
        TensorView row = o.host();
        row.data = static_cast<std::byte*>(row.data) +
                   (t * row.token_stride + h * row.head_stride) * size_of(row.dtype);
        row.tokens = row.heads = 1;
        cpu_math().clear(row, nullptr);
      }
    }
    const TensorView& all = o.host();
    gpu().copy(o.gpu().data, all.data, all.tokens * all.token_stride * size_of(all.dtype));
  }
  static void expect_near(const std::vector<float>& found, const std::vector<float>& expected,
                          float tolerance) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] == expected[i]) continue;
      ASSERT_LE(std::abs(found[i] - expected[i]), tolerance * (1 + std::abs(expected[i])))
          << "at " << i << ": " << found[i] << ", expected " << expected[i];
    }
  }

  std::mt19937 random_{7};
};

TEST_F(StepMathTest, ClearsCopiesAndRoundsToTheBit) {
  for (const Shape& shape : kShapes) {
    for (const DType from_type : kDTypes) {
      const TwinTensor from = tensor(from_type, shape);
      const TwinTensor same = tensor(from_type, shape);
      cpu_math().copy(from.host(), same.host(), nullptr);
      gpu_math().copy(from.gpu(), same.gpu(), stream());
      EXPECT_EQ(same.gpu_values(), same.host_values());
      cpu_math().clear(same.host(), nullptr);
      gpu_math().clear(same.gpu(), stream());
      EXPECT_EQ(same.gpu_values(), same.host_values());
    }
    const TwinTensor wide = tensor(DType::float32, shape);
    const TwinTensor narrow = tensor(DType::bfloat16, shape);
    cpu_math().convert(wide.host(), narrow.host(), nullptr);
    gpu_math().convert(wide.gpu(), narrow.gpu(), stream());
    EXPECT_EQ(narrow.gpu_values(), narrow.host_values());
    const TwinLse from = lse(shape);
    const TwinLse to = lse(shape);
    gpu_math().copy(from.gpu(), to.gpu(), stream());
    EXPECT_EQ(to.gpu_values(), from.host_values());
    gpu_math().clear(to.gpu(), stream());
    EXPECT_THAT(to.gpu_values(), ::testing::Each(-std::numeric_limits<float>::infinity()));
  }
}

TEST_F(StepMathTest, AddsToTheBit) {
  for (const Shape& shape : kShapes) {
    for (const DType dtype : kDTypes) {
      for (const bool first : {false, true}) {
        const TwinTensor from = tensor(dtype, shape);
        const TwinTensor into = tensor(DType::float32, shape);
        cpu_math().add(from.host(), into.host(), first, nullptr);
        gpu_math().add(from.gpu(), into.gpu(), first, stream());
        EXPECT_EQ(into.gpu_values(), into.host_values());
      }
    }
  }
}

TEST_F(StepMathTest, SumsSeveral) {
  for (const Shape& shape : kShapes) {
    for (const DType dtype : kDTypes) {
      for (std::size_t count = 1; count <= StepMath::kMaxParts; ++count) {
        std::vector<TwinTensor> parts;
        std::vector<ConstTensorView> on_host;
        std::vector<ConstTensorView> on_gpu;
        for (std::size_t i = 0; i < count; ++i) parts.push_back(tensor(dtype, shape));
        for (const TwinTensor& part : parts) {
          on_host.emplace_back(part.host());
          on_gpu.emplace_back(part.gpu());
        }
        const TwinTensor sum = tensor(DType::float32, shape);
        cpu_math().sum_all(on_host, sum.host(), sum.host(), nullptr);
        gpu_math().sum_all(on_gpu, sum.gpu(), sum.gpu(), stream());
        expect_near(sum.gpu_values(), sum.host_values(), 1e-6F);
        const TwinTensor rounded = tensor(DType::bfloat16, shape);
        cpu_math().sum_all(on_host, {}, rounded.host(), nullptr);
        gpu_math().sum_all(on_gpu, {}, rounded.gpu(), stream());
        expect_near(rounded.gpu_values(), rounded.host_values(), 1.0F / 128);
      }
    }
  }
}

/// More than one launch takes, with gaps and without.
TEST_F(StepMathTest, CopiesSeveral) {
  std::vector<TwinTensor> from, to;
  for (int i = 0; i < 12; ++i) {
    for (const Shape& shape : kShapes) {
      for (const DType dtype : kDTypes) {
        from.push_back(tensor(dtype, shape));
        to.push_back(tensor(dtype, shape));
      }
    }
  }
  std::vector<TensorCopy> on_host, on_gpu;
  for (std::size_t i = 0; i < from.size(); ++i) {
    on_host.push_back({from[i].host(), to[i].host()});
    on_gpu.push_back({from[i].gpu(), to[i].gpu()});
  }
  cpu_math().copy_all(on_host, nullptr);
  gpu_math().copy_all(on_gpu, stream());
  for (const TwinTensor& copied : to) EXPECT_EQ(copied.gpu_values(), copied.host_values());
}

/// Sums of random rows of many parts, more than one launch takes, with gaps and without.
TEST_F(StepMathTest, TotalsPartsOverSomeRows) {
  std::vector<TwinTensor> parts, results;
  std::vector<SumOfRows> on_host, on_gpu;
  for (const Shape& shape : kShapes) {
    for (const DType dtype : kDTypes) {
      for (const int count : {0, 1, 3, 40, 150}) {
        results.push_back(tensor(dtype, shape));
        SumOfRows& host = on_host.emplace_back(SumOfRows{{}, results.back().host()});
        SumOfRows& gpu = on_gpu.emplace_back(SumOfRows{{}, results.back().gpu()});
        for (int i = 0; i < count; ++i) {
          Shape some = shape;
          some.tokens = std::uniform_int_distribution<std::int64_t>(1, shape.tokens)(random_);
          parts.push_back(tensor(DType::float32, some));
          const std::int64_t row =
              std::uniform_int_distribution<std::int64_t>(0, shape.tokens - some.tokens)(random_);
          host.parts.push_back({parts.back().host(), row});
          gpu.parts.push_back({parts.back().gpu(), row});
        }
      }
    }
  }
  cpu_math().total_all(on_host, nullptr);
  gpu_math().total_all(on_gpu, stream());
  for (const TwinTensor& to : results) {
    expect_near(to.gpu_values(), to.host_values(),
                to.host().dtype == DType::float32 ? 1e-5F : 1e-2F);
  }
}

TEST_F(StepMathTest, Merges) {
  for (const Shape& shape : kShapes) {
    for (const DType dtype : kDTypes) {
      const TwinTensor o = tensor(DType::float32, shape);
      const TwinLse sum = lse(shape);
      for (const bool first : {true, false, false}) {
        const TwinTensor part = tensor(dtype, shape);
        const TwinLse part_lse = lse(shape);
        clear_unseen(part, part_lse);
        cpu_math().merge({part.host(), part_lse.host()}, o.host(), sum.host(), first, nullptr);
        gpu_math().merge({part.gpu(), part_lse.gpu()}, o.gpu(), sum.gpu(), first, stream());
      }
      expect_near(o.gpu_values(), o.host_values(), 1e-5F);
      expect_near(sum.gpu_values(), sum.host_values(), 1e-5F);
    }
  }
}

TEST_F(StepMathTest, MergesSeveralAtOnce) {
  for (const Shape& shape : kShapes) {
    for (std::size_t count = 1; count <= StepMath::kMaxParts; ++count) {
      for (const bool accumulates : {false, true}) {
        std::vector<TwinTensor> parts;
        std::vector<TwinLse> lses;
        std::vector<Partial> on_host;
        std::vector<Partial> on_gpu;
        for (std::size_t i = 0; i < count; ++i) {
          parts.push_back(tensor(DType::bfloat16, shape));
          lses.push_back(lse(shape));
          clear_unseen(parts.back(), lses.back());
        }
        for (std::size_t i = 0; i < count; ++i) {
          on_host.push_back({parts[i].host(), lses[i].host()});
          on_gpu.push_back({parts[i].gpu(), lses[i].gpu()});
        }
        const TwinTensor held = tensor(DType::float32, shape);
        const TwinLse sum = lse(shape);
        clear_unseen(held, sum);
        const TwinTensor result = tensor(DType::bfloat16, shape);
        cpu_math().merge_all(on_host, accumulates ? Partial{held.host(), sum.host()} : Partial{},
                             result.host(), sum.host(), nullptr);
        gpu_math().merge_all(on_gpu, accumulates ? Partial{held.gpu(), sum.gpu()} : Partial{},
                             result.gpu(), sum.gpu(), stream());
        expect_near(result.gpu_values(), result.host_values(), 1.0F / 128);
        expect_near(sum.gpu_values(), sum.host_values(), 1e-5F);
      }
    }
  }
}

TEST_F(StepMathTest, JoinsSinksAndSumsTheirGradients) {
  const auto floats = [](const TensorView& view) { return static_cast<float*>(view.data); };
  for (const Shape& shape : kShapes) {
    for (const DType dtype : kDTypes) {
      const TwinTensor o = tensor(dtype, shape);
      const TwinTensor dout = tensor(dtype, shape);
      const TwinLse all = lse(shape);
      clear_unseen(o, all);
      const TwinTensor sink = tensor(DType::float32, {1, shape.heads, 1, 0});
      const TwinTensor dsink = tensor(DType::float32, {1, shape.heads, 1, 0});
      cpu_math().join_sinks(floats(sink.host()), o.host(), all.host(), nullptr);
      gpu_math().join_sinks(floats(sink.gpu()), o.gpu(), all.gpu(), stream());
      expect_near(o.gpu_values(), o.host_values(), dtype == DType::float32 ? 1e-5F : 1.0F / 128);
      expect_near(all.gpu_values(), all.host_values(), 1e-5F);
      const TensorView& joined = o.host();
      gpu().copy(o.gpu().data, joined.data,
                 joined.tokens * joined.token_stride * size_of(joined.dtype));
      gpu().copy(all.gpu().data, all.host().data, 4 * shape.heads * shape.tokens);
      cpu_math().sink_gradients(floats(sink.host()), floats(dsink.host()), dout.host(), o.host(),
                                all.host(), nullptr);
      gpu_math().sink_gradients(floats(sink.gpu()), floats(dsink.gpu()), dout.gpu(), o.gpu(),
                                all.gpu(), stream());
      expect_near(dsink.gpu_values(), dsink.host_values(), 1e-4F);
    }
  }
}

TEST_F(StepMathTest, ShowsNaN) {
  const Shape shape{4, 2, 64, 0};
  const TwinTensor part = tensor(DType::bfloat16, shape);
  const TwinLse part_lse = lse(shape);
  const TwinTensor o = tensor(DType::float32, shape);
  const TwinLse sum = lse(shape);
  gpu().fill(part_lse.gpu().data, 0xff, shape.tokens * shape.heads * 4);
  gpu_math().merge({part.gpu(), part_lse.gpu()}, o.gpu(), sum.gpu(), false, stream());
  for (const float value : o.gpu_values()) EXPECT_TRUE(std::isnan(value));
  for (const float value : sum.gpu_values()) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace longca::testing
