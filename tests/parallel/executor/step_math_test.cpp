// The arithmetic between steps on the CPU against the same in float64.
#include "parallel/executor/step_math.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace longca::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A tensor and an lse with or without gaps between heads, drawn; some rows have seen no key.
class Drawn {
 public:
  Drawn(DType dtype, std::int64_t tokens, std::int64_t heads, std::int64_t dim, bool gaps,
        std::mt19937& random)
      : owned_(dtype, tokens, heads + (gaps ? 2 : 0), dim + (gaps ? 3 : 0)),
        owned_lse_(heads, tokens + (gaps ? 5 : 0)),
        o_(owned_.view()),
        lse_(owned_lse_.view()) {
    o_.heads = heads;
    o_.dim = dim;
    lse_.tokens = tokens;
    std::normal_distribution<float> normal;
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const bool seen = random() % 4 != 0;
        lse_.head(h)[t] = seen ? 5 * normal(random) : -kInfinity;
        for (std::int64_t i = 0; i < dim; ++i) set(t, h, i, seen ? normal(random) : 0.0F);
      }
    }
  }

  const TensorView& o() const { return o_; }
  const LseView& lse() const { return lse_; }
  double at(std::int64_t t, std::int64_t h, std::int64_t i) const {
    return o_.dtype == DType::float32 ? o_.row<float>(t, h)[i]
                                      : static_cast<float>(o_.row<BFloat16>(t, h)[i]);
  }
  void set(std::int64_t t, std::int64_t h, std::int64_t i, float value) const {
    if (o_.dtype == DType::float32) {
      o_.row<float>(t, h)[i] = value;
    } else {
      o_.row<BFloat16>(t, h)[i] = BFloat16(value);
    }
  }
  Partial partial() const { return {o_, lse_}; }

 private:
  HostTensor owned_;
  HostLse owned_lse_;
  TensorView o_;
  LseView lse_;
};

/// The softmax over the keys of several results, element by element.
struct Merged {
  double lse = -kInfinity;
  std::vector<double> o;
};
Merged merged(const std::vector<const Drawn*>& parts, std::int64_t t, std::int64_t h) {
  Merged out;
  out.o.resize(static_cast<std::size_t>(parts[0]->o().dim));
  double sum = 0;
  for (const Drawn* part : parts) sum += std::exp(static_cast<double>(part->lse().head(h)[t]));
  if (sum == 0) return out;
  out.lse = std::log(sum);
  for (const Drawn* part : parts) {
    const double weight = std::exp(static_cast<double>(part->lse().head(h)[t]) - out.lse);
    for (std::size_t i = 0; i < out.o.size(); ++i) {
      out.o[i] += weight * part->at(t, h, static_cast<std::int64_t>(i));
    }
  }
  return out;
}

/// Shapes that take one thread and several, with gaps and without.
struct Shape {
  std::int64_t tokens, heads, dim;
  bool gaps;
};
constexpr std::array<Shape, 5> kShapes = {{{1, 1, 1, false},
                                           {7, 3, 5, true},
                                           {300, 2, 128, false},
                                           {130, 8, 64, true},
                                           {0, 2, 8, false}}};

double tolerance(DType dtype) {
  return dtype == DType::float32 ? 2e-6 : 8e-3;
}

/// Compares every row of `to` with what merging `parts`, copied before, gives.
void expect_merged(const std::vector<Merged>& expected, const Drawn& to) {
  std::size_t row = 0;
  for (std::int64_t t = 0; t < to.o().tokens; ++t) {
    for (std::int64_t h = 0; h < to.o().heads; ++h, ++row) {
      const float lse = to.lse().head(h)[t];
      if (std::isinf(expected[row].lse)) {
        ASSERT_EQ(lse, -kInfinity);
      } else {
        ASSERT_NEAR(lse, expected[row].lse, 2e-6);
      }
      for (std::int64_t i = 0; i < to.o().dim; ++i) {
        const double want = expected[row].o[static_cast<std::size_t>(i)];
        ASSERT_NEAR(to.at(t, h, i), want, tolerance(to.o().dtype) * std::max(1.0, std::abs(want)));
      }
    }
  }
}

std::vector<Merged> all_merged(const std::vector<const Drawn*>& parts) {
  std::vector<Merged> rows;
  for (std::int64_t t = 0; t < parts[0]->o().tokens; ++t) {
    for (std::int64_t h = 0; h < parts[0]->o().heads; ++h) rows.push_back(merged(parts, t, h));
  }
  return rows;
}

TEST(StepMath, MergesAPartIntoAResult) {
  StepMath& math = step_math(DeviceKind::cpu);
  std::mt19937 random(1);
  for (const Shape& s : kShapes) {
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      for (const bool first : {false, true}) {
        const Drawn part(dtype, s.tokens, s.heads, s.dim, s.gaps, random);
        const Drawn into(DType::float32, s.tokens, s.heads, s.dim, s.gaps, random);
        const auto expected = first ? all_merged({&part}) : all_merged({&part, &into});
        math.merge(part.partial(), into.o(), into.lse(), first, nullptr);
        ASSERT_NO_FATAL_FAILURE(expect_merged(expected, into));
      }
    }
  }
}

TEST(StepMath, MergesSeveralPartsIntoAnyType) {
  StepMath& math = step_math(DeviceKind::cpu);
  std::mt19937 random(2);
  for (const Shape& s : kShapes) {
    for (const DType out : {DType::float32, DType::bfloat16}) {
      std::vector<Drawn> parts;
      for (std::size_t i = 0; i < StepMath::kMaxParts; ++i) {
        parts.emplace_back(DType::bfloat16, s.tokens, s.heads, s.dim, s.gaps, random);
      }
      const Drawn accumulator(DType::float32, s.tokens, s.heads, s.dim, !s.gaps, random);
      const Drawn to(out, s.tokens, s.heads, s.dim, s.gaps, random);
      std::vector<Partial> given;
      std::vector<const Drawn*> sources;
      for (const Drawn& part : parts) {
        given.push_back(part.partial());
        sources.push_back(&part);
        math.merge_all(given, {}, to.o(), to.lse(), nullptr);
        ASSERT_NO_FATAL_FAILURE(expect_merged(all_merged(sources), to));
      }
      sources.push_back(&accumulator);
      const auto expected = all_merged(sources);
      math.merge_all(given, accumulator.partial(), to.o(), to.lse(), nullptr);
      ASSERT_NO_FATAL_FAILURE(expect_merged(expected, to));
      math.merge_all(given, accumulator.partial(), accumulator.o(), accumulator.lse(), nullptr);
      ASSERT_NO_FATAL_FAILURE(expect_merged(expected, accumulator));
    }
  }
}

template <typename Call>
void for_each_element(const Drawn& tensor, Call&& call) {
  for (std::int64_t t = 0; t < tensor.o().tokens; ++t) {
    for (std::int64_t h = 0; h < tensor.o().heads; ++h) {
      for (std::int64_t d = 0; d < tensor.o().dim; ++d) call(tensor.at(t, h, d));
    }
  }
}

/// More parts of a row than one sum takes, rows of none, parts that lie one in another; all sums of
/// a shape at once.
TEST(StepMath, TotalsPartsOverSomeRows) {
  StepMath& math = step_math(DeviceKind::cpu);
  std::mt19937 random(5);
  for (const Shape& s : kShapes) {
    for (const DType out : {DType::float32, DType::bfloat16}) {
      std::vector<Drawn> parts, results;
      std::vector<SumOfRows> sums;
      std::vector<std::vector<double>> expected;
      for (const int count : {0, 1, 3, 12}) {
        results.emplace_back(out, s.tokens, s.heads, s.dim, s.gaps, random);
        SumOfRows& sum = sums.emplace_back(SumOfRows{{}, results.back().o()});
        auto& wanted = expected.emplace_back(static_cast<std::size_t>(s.tokens * s.heads * s.dim));
        for (int i = 0; i < count; ++i) {
          const auto begin = static_cast<std::int64_t>(random() % (s.tokens + 1));
          const auto rows = static_cast<std::int64_t>(random() % (s.tokens - begin + 1));
          parts.emplace_back(DType::float32, rows, s.heads, s.dim, i % 2 == 0, random);
          sum.parts.push_back({parts.back().o(), begin});
          auto at = wanted.begin() + begin * s.heads * s.dim;
          for_each_element(parts.back(), [&](double value) { *at++ += value; });
        }
      }
      math.total_all(sums, nullptr);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        auto want = expected[i].begin();
        for_each_element(results[i], [&](double value) {
          ASSERT_NEAR(value, *want, tolerance(out) * (1 + std::abs(*want)));
          ++want;
        });
      }
    }
  }
}

TEST(StepMath, SegmentsEndWherePartsBeginOrEnd) {
  const HostTensor memory(DType::float32, 10, 1, 1);
  const auto rows = [&](std::int64_t count) {
    TensorView view = memory.view();
    view.tokens = count;
    return view;
  };
  const RowsOfSum parts[] = {{rows(6), 0}, {rows(3), 4}, {rows(0), 5}, {rows(1), 9}};
  std::vector<std::pair<Range, std::vector<std::size_t>>> found;
  for (const SumSegment& segment : sum_segments(parts, 10)) {
    found.emplace_back(segment.rows, segment.parts);
  }
  const decltype(found) expected = {
      {{0, 4}, {0}}, {{4, 6}, {0, 1}}, {{6, 7}, {1}}, {{7, 9}, {}}, {{9, 10}, {3}}};
  EXPECT_EQ(found, expected);
  EXPECT_ANY_THROW(sum_segments(parts, 9));
}

TEST(StepMath, ARowThatIsNoNumberStaysNone) {
  StepMath& math = step_math(DeviceKind::cpu);
  std::mt19937 random(3);
  using Limits = std::numeric_limits<float>;
  for (const auto& [in_part, beside] : {std::pair{false, 1.0F},
                                        {true, 1.0F},
                                        {false, -Limits::infinity()},
                                        {true, -Limits::infinity()}}) {
    const Drawn part(DType::float32, 4, 1, 8, false, random);
    const Drawn into(DType::float32, 4, 1, 8, false, random);
    (in_part ? part : into).lse().head(0)[2] = Limits::quiet_NaN();
    (in_part ? into : part).lse().head(0)[2] = beside;
    math.merge(part.partial(), into.o(), into.lse(), false, nullptr);
    EXPECT_TRUE(std::isnan(into.lse().head(0)[2]));
    EXPECT_TRUE(std::isnan(into.at(2, 0, 5)));
    EXPECT_FALSE(std::isnan(into.at(1, 0, 5)));
  }
}

TEST(StepMath, JoinsSinksToRows) {
  StepMath& math = step_math(DeviceKind::cpu);
  std::mt19937 random(5);
  for (const Shape& s : kShapes) {
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      const Drawn into(dtype, s.tokens, s.heads, s.dim, s.gaps, random);
      // A key whose value is 0.
      const Drawn key(DType::float32, s.tokens, s.heads, s.dim, false, random);
      math.clear(key.o(), nullptr);
      std::vector<float> sink;
      for (std::int64_t h = 0; h < s.heads; ++h) {
        sink.push_back(static_cast<float>(h) - 1.5F);
        std::fill_n(key.lse().head(h), s.tokens, sink.back());
      }
      const auto expected = all_merged({&into, &key});
      math.join_sinks(sink.data(), into.o(), into.lse(), nullptr);
      expect_merged(expected, into);
    }
  }
}

TEST(StepMath, SumsTheGradientsOfSinks) {
  StepMath& math = step_math(DeviceKind::cpu);
  std::mt19937 random(6);
  for (const Shape& s : kShapes) {
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      const Drawn o(dtype, s.tokens, s.heads, s.dim, s.gaps, random);
      const Drawn dout(dtype, s.tokens, s.heads, s.dim, !s.gaps, random);
      std::vector<float> sink;
      for (std::int64_t h = 0; h < s.heads; ++h) sink.push_back(static_cast<float>(h) / 4 - 1);
      math.join_sinks(sink.data(), o.o(), o.lse(), nullptr);
      std::vector<float> dsink(sink.size(), std::numeric_limits<float>::quiet_NaN());
      math.sink_gradients(sink.data(), dsink.data(), dout.o(), o.o(), o.lse(), nullptr);
      for (std::int64_t h = 0; h < s.heads; ++h) {
        const auto head = static_cast<std::size_t>(h);
        double sum = 0;
        for (std::int64_t t = 0; t < s.tokens; ++t) {
          double delta = 0;
          for (std::int64_t i = 0; i < s.dim; ++i) delta += dout.at(t, h, i) * o.at(t, h, i);
          sum -= std::exp(double{sink[head]} - double{o.lse().head(h)[t]}) * delta;
        }
        ASSERT_NEAR(dsink[head], sum, 1e-5 * std::max(1.0, std::abs(sum)));
      }
    }
  }
}

TEST(StepMath, AddsConvertsCopiesAndClears) {
  StepMath& math = step_math(DeviceKind::cpu);
  std::mt19937 random(4);
  for (const Shape& s : kShapes) {
    const Drawn part(DType::bfloat16, s.tokens, s.heads, s.dim, s.gaps, random);
    const Drawn sum(DType::float32, s.tokens, s.heads, s.dim, !s.gaps, random);
    const Drawn rounded(DType::bfloat16, s.tokens, s.heads, s.dim, s.gaps, random);
    const Drawn copy(DType::bfloat16, s.tokens, s.heads, s.dim, !s.gaps, random);
    const auto each = [&](auto&& body) {
      for (std::int64_t t = 0; t < s.tokens; ++t) {
        for (std::int64_t h = 0; h < s.heads; ++h) {
          for (std::int64_t i = 0; i < s.dim; ++i) body(t, h, i);
        }
      }
    };
    math.add(part.o(), sum.o(), true, nullptr);
    math.add(part.o(), sum.o(), false, nullptr);
    each([&](auto t, auto h, auto i) { ASSERT_EQ(sum.at(t, h, i), 2 * part.at(t, h, i)); });
    const std::array<ConstTensorView, 2> two = {part.o(), part.o()};
    math.sum_all(two, sum.o(), rounded.o(), nullptr);
    each([&](auto t, auto h, auto i) { ASSERT_EQ(rounded.at(t, h, i), 4 * part.at(t, h, i)); });
    math.sum_all(two, {}, sum.o(), nullptr);
    math.convert(sum.o(), rounded.o(), nullptr);
    math.copy(rounded.o(), copy.o(), nullptr);
    math.copy(part.lse(), copy.lse(), nullptr);
    each([&](auto t, auto h, auto i) {
      ASSERT_EQ(copy.at(t, h, i), 2 * part.at(t, h, i));
      ASSERT_EQ(copy.lse().head(h)[t], part.lse().head(h)[t]);
    });
    math.clear(copy.o(), nullptr);
    math.clear(copy.lse(), nullptr);
    each([&](auto t, auto h, auto i) {
      ASSERT_EQ(copy.at(t, h, i), 0);
      ASSERT_EQ(copy.lse().head(h)[t], -kInfinity);
    });
  }
}

TEST(StepMath, RoundsToNearestEven) {
  const HostTensor from(DType::float32, 1, 1, 4);
  const HostTensor to(DType::bfloat16, 1, 1, 4);
  // Halfway between two bfloat16 numbers, twice; just above; not a number.
  const std::array<float, 4> values = {0x1.01p0F, 0x1.03p0F, 0x1.010002p0F,
                                       std::numeric_limits<float>::quiet_NaN()};
  std::ranges::copy(values, from.view().row<float>(0, 0));
  step_math(DeviceKind::cpu).convert(from.view(), to.view(), nullptr);
  const BFloat16* rounded = to.view().row<BFloat16>(0, 0);
  EXPECT_EQ(static_cast<float>(rounded[0]), 0x1.00p0F);
  EXPECT_EQ(static_cast<float>(rounded[1]), 0x1.04p0F);
  EXPECT_EQ(static_cast<float>(rounded[2]), 0x1.02p0F);
  EXPECT_TRUE(std::isnan(static_cast<float>(rounded[3])));
}

}  // namespace
}  // namespace longca::test
