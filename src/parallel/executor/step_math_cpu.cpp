#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/rounding.h"
#include "core/thread_pool.h"
#include "parallel/executor/step_math.h"

namespace longca {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kBlockElements = 1 << 14;  ///< elements that a thread takes at a time

void expect_one_shape(const ConstTensorView& a, const ConstTensorView& b) {
  LONGCA_CHECK(a.tokens == b.tokens && a.heads == b.heads && a.dim == b.dim,
               "[{}, {}, {}] meets [{}, {}, {}]", a.tokens, a.heads, a.dim, b.tokens, b.heads,
               b.dim);
}

void expect_one_shape(const ConstTensorView& o, const ConstLseView& lse) {
  LONGCA_CHECK(o.tokens == lse.tokens && o.heads == lse.heads, "o [{}, {}] meets lse [{}, {}]",
               o.tokens, o.heads, lse.heads, lse.tokens);
}

/// Runs body(token) for all tokens of `shape` on all threads.
void for_tokens(const ConstTensorView& shape, const std::function<void(std::int64_t token)>& body) {
  const std::int64_t row = std::max<std::int64_t>(1, shape.heads * shape.dim);
  const std::int64_t block = std::max<std::int64_t>(1, kBlockElements / row);
  ThreadPool::global().parallel_for(ceil_div(shape.tokens, block), [&](std::int64_t item, int) {
    const std::int64_t end = std::min(shape.tokens, (item + 1) * block);
    for (std::int64_t t = item * block; t < end; ++t) body(t);
  });
}

/// to[i] = f(to[i], from[i]) in float32 for all elements of the two tensors.
template <typename From, typename To, typename F>
void combine(const ConstTensorView& from, const TensorView& to, F f) {
  const bool dense = from.head_stride == from.dim && to.head_stride == to.dim;
  const std::int64_t rows = dense ? 1 : to.heads;
  const std::int64_t length = dense ? to.heads * to.dim : to.dim;
  for_tokens(to, [&](std::int64_t token) {
    for (std::int64_t h = 0; h < rows; ++h) {
      const From* a = from.row<From>(token, h);
      To* b = to.row<To>(token, h);
      for (std::int64_t i = 0; i < length; ++i) {
        b[i] = static_cast<To>(f(static_cast<float>(b[i]), static_cast<float>(a[i])));
      }
    }
  });
}

/// The same for any element types.
template <typename F>
void combine_any(const ConstTensorView& from, const TensorView& to, F f) {
  expect_one_shape(from, to);
  with_type_of(from.dtype, [&]<typename From>(From) {
    with_type_of(to.dtype, [&]<typename To>(To) { combine<From, To>(from, to, f); });
  });
}

void copy_tensor(const ConstTensorView& from, const TensorView& to) {
  expect_one_shape(from, to);
  const std::int64_t size = size_of(to.dtype);
  const bool dense = from.head_stride == from.dim && to.head_stride == to.dim;
  const std::int64_t rows = dense ? 1 : to.heads;
  const auto bytes = static_cast<std::size_t>((dense ? to.heads : 1) * to.dim * size);
  for_tokens(to, [&](std::int64_t token) {
    for (std::int64_t h = 0; h < rows; ++h) {
      const std::int64_t source = token * from.token_stride + h * from.head_stride;
      const std::int64_t target = token * to.token_stride + h * to.head_stride;
      std::memcpy(static_cast<std::byte*>(to.data) + target * size,
                  static_cast<const std::byte*>(from.data) + source * size, bytes);
    }
  });
}

constexpr std::size_t kMaxSources = StepMath::kMaxParts + 1;

/// Computes the weights e^(lse_i − lse) of the parts of one row; returns its lse.
float weigh(std::size_t count, const std::array<float, kMaxSources>& lse,
            std::array<float, kMaxSources>& weights) {
  double largest = -kInfinity;
  for (std::size_t i = 0; i < count && !std::isnan(largest); ++i) {
    if (!(lse[i] <= largest)) largest = lse[i];  // a NaN, too
  }
  weights.fill(0);
  if (largest == -kInfinity) return -kInfinity;
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += std::exp(lse[i] - largest);
  const double total = largest + std::log(sum);
  for (std::size_t i = 0; i < count; ++i) {
    weights[i] = static_cast<float>(std::exp(lse[i] - total));
  }
  return static_cast<float>(total);
}

/// sums += weight · row.
template <typename T>
void add_weighted(const T* row, float weight, std::int64_t dim, float* sums) {
  for (std::int64_t i = 0; i < dim; ++i) sums[i] += weight * static_cast<float>(row[i]);
}

void add_row(const ConstTensorView& o, std::int64_t token, std::int64_t head, float weight,
             float* sums) {
  if (weight == 0) return;  // a row without keys may hold anything
  with_type_of(o.dtype,
               [&]<typename T>(T) { add_weighted(o.row<T>(token, head), weight, o.dim, sums); });
}

void store_row(const float* sums, const TensorView& o, std::int64_t token, std::int64_t head) {
  with_type_of(o.dtype, [&]<typename T>(T) {
    std::transform(sums, sums + o.dim, o.row<T>(token, head), [](float x) { return T(x); });
  });
}

/// (o, lse) = the softmax over the keys of all sources. o and lse may alias one of them.
void merge_sources(std::span<const Partial> sources, const TensorView& o, const LseView& lse) {
  LONGCA_CHECK(!sources.empty() && sources.size() <= kMaxSources, "{} partial results",
               sources.size());
  expect_one_shape(o, lse);
  for (const Partial& source : sources) {
    expect_one_shape(source.o, o);
    expect_one_shape(source.o, source.lse);
  }
  for_tokens(o, [&](std::int64_t token) {
    thread_local std::vector<float> sums;
    std::array<float, kMaxSources> part_lse{}, weights{};
    for (std::int64_t h = 0; h < o.heads; ++h) {
      for (std::size_t i = 0; i < sources.size(); ++i) part_lse[i] = sources[i].lse.head(h)[token];
      const float total = weigh(sources.size(), part_lse, weights);
      sums.assign(static_cast<std::size_t>(o.dim), 0.0F);
      for (std::size_t i = 0; i < sources.size(); ++i) {
        add_row(sources[i].o, token, h, weights[i], sums.data());
      }
      store_row(sums.data(), o, token, h);
      lse.head(h)[token] = total;
    }
  });
}

template <typename T>
double dot(const T* a, const T* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += static_cast<double>(static_cast<float>(a[i])) * static_cast<float>(b[i]);
  }
  return sum;
}

/// to = the sum of all sources. It may alias one of them.
void sum_sources(std::span<const ConstTensorView> sources, const TensorView& to) {
  for (const ConstTensorView& source : sources) expect_one_shape(source, to);
  for_tokens(to, [&](std::int64_t token) {
    thread_local std::vector<float> sums;
    for (std::int64_t h = 0; h < to.heads; ++h) {
      sums.assign(static_cast<std::size_t>(to.dim), 0.0F);
      for (const ConstTensorView& source : sources) add_row(source, token, h, 1, sums.data());
      store_row(sums.data(), to, token, h);
    }
  });
}

class CpuStepMath final : public StepMath {
 public:
  void clear(const TensorView& tensor, Stream /*stream*/) override {
    combine_any(tensor, tensor, [](float, float) { return 0.0F; });
  }
  void clear(const LseView& lse, Stream /*stream*/) override {
    for (std::int64_t h = 0; h < lse.heads; ++h) std::fill_n(lse.head(h), lse.tokens, -kInfinity);
  }
  void copy(const ConstTensorView& from, const TensorView& to, Stream /*stream*/) override {
    LONGCA_CHECK(from.dtype == to.dtype, "a copy from {} to {}", to_string(from.dtype),
                 to_string(to.dtype));
    copy_tensor(from, to);
  }
  void copy(const ConstLseView& from, const LseView& to, Stream /*stream*/) override {
    LONGCA_CHECK(from.heads == to.heads && from.tokens == to.tokens, "lse [{}, {}] meets [{}, {}]",
                 from.heads, from.tokens, to.heads, to.tokens);
    for (std::int64_t h = 0; h < to.heads; ++h) std::copy_n(from.head(h), to.tokens, to.head(h));
  }
  void add(const ConstTensorView& from, const TensorView& into, bool first,
           Stream /*stream*/) override {
    LONGCA_CHECK(into.dtype == DType::float32, "sums are of {}", to_string(into.dtype));
    if (first) {
      combine_any(from, into, [](float, float x) { return x; });
    } else {
      combine_any(from, into, [](float sum, float x) { return sum + x; });
    }
  }
  void convert(const ConstTensorView& from, const TensorView& to, Stream /*stream*/) override {
    LONGCA_CHECK(from.dtype == DType::float32, "{} is converted", to_string(from.dtype));
    combine_any(from, to, [](float, float x) { return x; });
  }
  void merge(const Partial& part, const TensorView& o, const LseView& lse, bool first,
             Stream /*stream*/) override {
    LONGCA_CHECK(o.dtype == DType::float32, "results are merged into {}", to_string(o.dtype));
    if (first) {
      merge_sources(std::array{part}, o, lse);
    } else {
      merge_sources(std::array{part, Partial{o, lse}}, o, lse);
    }
  }
  void merge_all(std::span<const Partial> parts, const Partial& accumulator, const TensorView& o,
                 const LseView& lse, Stream /*stream*/) override {
    std::vector<Partial> sources(parts.begin(), parts.end());
    if (accumulator.o.data != nullptr) sources.push_back(accumulator);
    merge_sources(sources, o, lse);
  }
  void sum_all(std::span<const ConstTensorView> parts, const ConstTensorView& accumulator,
               const TensorView& to, Stream /*stream*/) override {
    std::vector<ConstTensorView> sources(parts.begin(), parts.end());
    if (accumulator.data != nullptr) sources.push_back(accumulator);
    sum_sources(sources, to);
  }
  void join_sinks(const float* sink, const TensorView& o, const LseView& lse,
                  Stream /*stream*/) override {
    expect_one_shape(o, lse);
    for_tokens(o, [&](std::int64_t token) {
      for (std::int64_t h = 0; h < o.heads; ++h) {
        float& of_row = lse.head(h)[token];
        std::array<float, kMaxSources> weights{};
        of_row = weigh(2, {of_row, sink[h]}, weights);
        with_type_of(o.dtype, [&]<typename T>(T) {
          T* row = o.row<T>(token, h);
          std::transform(row, row + o.dim, row,
                         [&](T x) { return T(weights[0] * static_cast<float>(x)); });
        });
      }
    });
  }
  void sink_gradients(const float* sink, float* dsink, const ConstTensorView& dout,
                      const ConstTensorView& o, const ConstLseView& lse,
                      Stream /*stream*/) override {
    expect_one_shape(dout, o);
    expect_one_shape(o, lse);
    LONGCA_CHECK(dout.dtype == o.dtype, "dout is {}, o {}", to_string(dout.dtype),
                 to_string(o.dtype));
    with_type_of(o.dtype, [&]<typename T>(T) {
      ThreadPool::global().parallel_for(o.heads, [&](std::int64_t h, int) {
        double sum = 0;
        for (std::int64_t token = 0; token < o.tokens; ++token) {
          if (lse.head(h)[token] == -kInfinity) continue;  // nor has it a sink
          const double delta = dot(dout.row<T>(token, h), o.row<T>(token, h), o.dim);
          sum += std::exp(static_cast<double>(sink[h]) - lse.head(h)[token]) * delta;
        }
        dsink[h] = static_cast<float>(-sum);
      });
    });
  }
};

}  // namespace

StepMath& cpu_step_math() {
  static CpuStepMath math;
  return math;
}

}  // namespace longca
