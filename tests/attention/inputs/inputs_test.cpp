#include "attention/inputs/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "core/philox.h"

namespace longca {
namespace {

constexpr double kSqrt2 = 1.4142135623730951;

std::vector<float> draw(std::uint64_t seed, InputTensor tensor, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t first = 0; first < count; first += kInputChunk) {
    const auto size = static_cast<std::size_t>(std::min(kInputChunk, count - first));
    draw_normal(seed, tensor, first / kInputChunk, std::span(values).subspan(first, size));
  }
  return values;
}

double normal_cdf(double x) {
  return 0.5 * std::erfc(-x / kSqrt2);
}

std::uint64_t hash_bits(std::span<const float> values) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const float value : values) {
    hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 1099511628211U;
  }
  return hash;
}

Problem small_problem(DType dtype) {
  Problem problem;
  problem.tokens_q = 33;
  problem.tokens_k = 71;
  problem.heads_q = 6;
  problem.heads_k = 2;
  problem.head_dim = 40;
  problem.dtype = dtype;
  return problem;
}

TEST(Inputs, TheValuesAreFixedToTheBit) {
  EXPECT_THAT(draw(42, InputTensor::q, 4),
              testing::ElementsAre(0x1.337dep-2F, 0x1.6278dap-1F, 0x1.7340e2p-3F, -0x1.d9957cp-1F));
  EXPECT_EQ(hash_bits(draw(42, InputTensor::q, 10000)), 3092014047064725348U);
  EXPECT_EQ(hash_bits(draw(0xffffffffffffffffU, InputTensor::dout, 10000)), 6667631580567241648U);
}

TEST(Inputs, EachValueIsTheQuantileOfItsPhiloxWord) {
  std::vector<std::uint32_t> words(kInputChunk);
  philox_fill(3, 0x80000000U + static_cast<std::uint32_t>(InputTensor::v), philox_key(7), words);
  std::vector<float> values(kInputChunk);
  draw_normal(7, InputTensor::v, 3, values);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const double uniform =
        (static_cast<double>(static_cast<std::int32_t>(words[i])) + 0.5) / 0x1p32;
    const double x = static_cast<double>(values[i]);
    // Seen from the nearer tail, where the cumulative function resolves x.
    const double tail = 0.5 - std::abs(uniform);
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
    EXPECT_NEAR(normal_cdf(-std::abs(x)), tail, 1e-6 * std::abs(x) * density + 1e-15) << words[i];
    EXPECT_EQ(std::signbit(x), std::signbit(uniform));
  }
}

struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};

Moments moments(std::span<const float> values) {
  std::array<double, 5> sums{};
  for (const float value : values) {
    double power = 1;
    for (std::size_t k = 1; k < sums.size(); ++k) sums[k] += power *= static_cast<double>(value);
  }
  const auto n = static_cast<double>(values.size());
  return {sums[1] / n, sums[2] / n, sums[3] / n, sums[4] / n};
}

// Four standard deviations of each estimate: fixed seeds, so that the outcome is fixed too.
TEST(Inputs, MomentsAreThoseOfTheStandardNormal) {
  constexpr std::int64_t kCount = 4'000'000;
  const double root = std::sqrt(static_cast<double>(kCount));
  for (const InputTensor tensor : {InputTensor::q, InputTensor::k, InputTensor::dout}) {
    const Moments m = moments(draw(1, tensor, kCount));
    EXPECT_NEAR(m.mean, 0, 4 / root);
    EXPECT_NEAR(m.variance, 1, 4 * std::sqrt(2.0) / root);
    EXPECT_NEAR(m.skewness, 0, 4 * std::sqrt(15.0) / root);
    EXPECT_NEAR(m.kurtosis, 3, 4 * std::sqrt(96.0) / root);
  }
}

TEST(Inputs, TheDistributionIsNormalByKolmogorovAndSmirnov) {
  constexpr std::int64_t kCount = 1'000'000;
  std::vector<float> values = draw(5, InputTensor::k, kCount);
  std::ranges::sort(values);
  double distance = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double cdf = normal_cdf(static_cast<double>(values[i]));
    distance = std::max({distance, std::abs(cdf - static_cast<double>(i) / kCount),
                         std::abs(cdf - static_cast<double>(i + 1) / kCount)});
  }
  EXPECT_LT(distance, 1.95 / std::sqrt(static_cast<double>(kCount)));  // significance 0.001
}

TEST(Inputs, TheTailsAreThere) {
  constexpr std::int64_t kCount = 20'000'000;
  const std::vector<float> values = draw(9, InputTensor::v, kCount);
  for (const double limit : {3.0, 4.0, 4.7}) {
    const auto beyond = static_cast<double>(std::ranges::count_if(
        values, [&](float x) { return std::abs(static_cast<double>(x)) > limit; }));
    const double expected = 2 * normal_cdf(-limit) * kCount;
    EXPECT_NEAR(beyond, expected, 4 * std::sqrt(expected)) << limit;
  }
  EXPECT_LT(std::abs(*std::ranges::max_element(values, {}, [](float x) { return std::abs(x); })),
            6.4F);
}

TEST(Inputs, StreamsOfSeedsAndTensorsAreUncorrelated) {
  constexpr std::int64_t kCount = 1'000'000;
  const auto correlation = [](std::span<const float> a, std::span<const float> b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    }
    return sum / static_cast<double>(a.size());
  };
  const std::vector<float> base = draw(1, InputTensor::q, kCount + 1);
  const std::span values(base);
  EXPECT_NEAR(correlation(values.first(kCount), draw(1, InputTensor::k, kCount)), 0, 4e-3);
  EXPECT_NEAR(correlation(values.first(kCount), draw(2, InputTensor::q, kCount)), 0, 4e-3);
  EXPECT_NEAR(correlation(values.first(kCount), values.last(kCount)), 0, 4e-3);
}

TEST(Inputs, TensorsHaveTheProblemsShapesAndHoldTheStreams) {
  const Problem problem = small_problem(DType::float32);
  const Inputs inputs = make_inputs(problem, 11);
  EXPECT_EQ(inputs.q.view().tokens, 33);
  EXPECT_EQ(inputs.q.view().heads, 6);
  EXPECT_EQ(inputs.dout.view().tokens, 33);
  EXPECT_EQ(inputs.k.view().tokens, 71);
  EXPECT_EQ(inputs.v.view().heads, 2);
  const std::int64_t count = std::int64_t{71} * 2 * 40;
  const std::span stored(inputs.k.view().row<float>(0, 0), static_cast<std::size_t>(count));
  EXPECT_THAT(stored, testing::ElementsAreArray(draw(11, InputTensor::k, count)));
}

TEST(Inputs, OfTwoBytesAreTheSameRounded) {
  const Inputs exact = make_inputs(small_problem(DType::float32), 3);
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    const Inputs rounded = make_inputs(small_problem(dtype), 3);
    for (std::int64_t c = 0; c < 40; ++c) {
      const float value = exact.dout.view().row<float>(32, 5)[c];
      const std::uint16_t expected =
          dtype == DType::bfloat16 ? BFloat16(value).bits : Float16(value).bits;
      EXPECT_EQ(rounded.dout.view().row<std::uint16_t>(32, 5)[c], expected) << to_string(dtype);
    }
  }
}

bool are_same_bytes(const void* a, const void* b, std::size_t size) {
  return std::memcmp(a, b, size) == 0;
}

/// Some of the rows, and zeros behind them.
template <typename T>
void expect_rows_of_the_whole(DType dtype, std::span<const Range> ranges, std::int64_t padding) {
  constexpr std::int64_t kTokens = 700;
  constexpr std::int64_t kHeads = 6;
  constexpr std::int64_t kDim = 40;
  std::int64_t rows = padding;
  for (const Range& range : ranges) rows += range.size();
  const HostTensor whole(dtype, kTokens, kHeads, kDim);
  const HostTensor part(dtype, rows, kHeads, kDim);
  std::memset(part.view().data, 0xff, static_cast<std::size_t>(part.bytes()));
  const Range all{0, kTokens};
  draw_rows(DeviceKind::cpu, whole.view(), 5, InputTensor::dout, {&all, 1});
  draw_rows(DeviceKind::cpu, part.view(), 5, InputTensor::dout, ranges);
  std::int64_t row = 0;
  const auto size = static_cast<std::size_t>(kHeads * kDim) * sizeof(T);
  for (const Range& range : ranges) {
    for (std::int64_t token = range.begin; token < range.end; ++token, ++row) {
      EXPECT_TRUE(are_same_bytes(part.view().row<T>(row, 0), whole.view().row<T>(token, 0), size))
          << token;
    }
  }
  const std::vector<char> zeros(size);
  for (; row < rows; ++row) {
    EXPECT_TRUE(are_same_bytes(part.view().row<T>(row, 0), zeros.data(), size)) << row;
  }
}

TEST(Inputs, RowsOfAShardAreThoseOfTheWhole) {
  // Chunks of 4096 values end inside rows of 240: one range in one chunk, some across several.
  const std::vector<Range> shards[] = {
      {}, {{0, 700}}, {{17, 18}}, {{16, 18}, {20, 20}, {350, 700}}, {{1, 4}, {600, 699}}};
  for (const std::vector<Range>& ranges : shards) {
    expect_rows_of_the_whole<float>(DType::float32, ranges, 0);
    expect_rows_of_the_whole<BFloat16>(DType::bfloat16, ranges, 3);
    expect_rows_of_the_whole<Float16>(DType::float16, ranges, 3);
  }
}

TEST(Inputs, ClusteredOnesAreShiftedByTheDirectionOfTheirTopic) {
  Problem problem = small_problem(DType::float32);
  problem.tokens_q = problem.tokens_k = 900;
  problem.head_dim = 200;  // more than one counter's signs
  const std::uint64_t seed = 7;
  const Inputs normal = make_inputs(problem, seed);
  const Inputs inputs = make_inputs(problem, seed, InputStyle::clustered);
  // The sentences of inputs.h and normal.h: which topic, and which sign.
  const auto shift = [&](std::int64_t token, std::uint32_t head_k, std::int64_t d) {
    const auto key = philox_key(seed);
    const auto segment = static_cast<std::uint32_t>(token / 200);
    const std::uint32_t topic = philox4x32_10({segment, 0xc0000000U, head_k, 0}, key)[0] % 32;
    const auto signs =
        philox4x32_10({topic, 0xc0000001U, head_k, static_cast<std::uint32_t>(d / 128)}, key);
    const bool negative = (signs[static_cast<std::size_t>(d % 128 / 32)] >> (d % 32) & 1) != 0;
    return negative ? -0.75F : 0.75F;
  };
  const auto expect_shifted = [&](const Tensor& shifted, const Tensor& plain) {
    const std::int64_t group = shifted.view().heads / problem.heads_k;
    for (std::int64_t token = 0; token < 900; ++token) {
      for (std::int64_t head = 0; head < shifted.view().heads; ++head) {
        for (std::int64_t d = 0; d < 200; ++d) {
          ASSERT_EQ(shifted.view().row<float>(token, head)[d],
                    plain.view().row<float>(token, head)[d] +
                        shift(token, static_cast<std::uint32_t>(head / group), d))
              << token << " " << head << " " << d;
        }
      }
    }
  };
  expect_shifted(inputs.q, normal.q);
  expect_shifted(inputs.k, normal.k);
  EXPECT_EQ(std::memcmp(inputs.v.view().data, normal.v.view().data, normal.v.bytes()), 0);
  EXPECT_EQ(std::memcmp(inputs.dout.view().data, normal.dout.view().data, normal.dout.bytes()), 0);
}

TEST(Inputs, ClusteredRowsOfAShardAreThoseOfTheWhole) {
  Problem problem = small_problem(DType::bfloat16);
  problem.tokens_k = 700;
  const Inputs whole = make_inputs(problem, 9, InputStyle::clustered);
  const std::vector<Range> ranges = {{1, 4}, {190, 215}, {600, 699}};
  const HostTensor rows(DType::bfloat16, 127, problem.heads_k, problem.head_dim);
  draw_rows(DeviceKind::cpu, rows.view(), 9, InputTensor::k, ranges,
            {InputStyle::clustered, problem.heads_k});
  const auto row_bytes = static_cast<std::size_t>(problem.heads_k) * problem.head_dim * 2;
  std::int64_t row = 0;
  for (const Range& range : ranges) {
    for (std::int64_t token = range.begin; token < range.end; ++token, ++row) {
      EXPECT_EQ(std::memcmp(rows.view().row<BFloat16>(row, 0),
                            whole.k.view().row<BFloat16>(token, 0), row_bytes),
                0)
          << token;
    }
  }
}

/// Direction of topic 0 of a KV head: the sentences of inputs.h and normal.h.
float direction(std::uint64_t seed, std::int64_t head_k, std::int64_t d) {
  const auto signs = philox4x32_10(
      {0, 0xc0000001U, static_cast<std::uint32_t>(head_k), static_cast<std::uint32_t>(d / 128)},
      philox_key(seed));
  return (signs[static_cast<std::size_t>(d % 128 / 32)] >> (d % 32) & 1) != 0 ? -1.0F : 1.0F;
}

/// Expects every value of `tensor` to be value(normal, token, u).
template <typename Value>
void expect_values(const Tensor& tensor, const Tensor& normal, std::int64_t heads_k,
                   std::uint64_t seed, const Value& value) {
  const TensorView& view = tensor.view();
  for (std::int64_t token = 0; token < view.tokens; ++token) {
    for (std::int64_t head = 0; head < view.heads; ++head) {
      for (std::int64_t d = 0; d < view.dim; ++d) {
        const float u = direction(seed, head * heads_k / view.heads, d);
        ASSERT_EQ(view.row<float>(token, head)[d],
                  value(normal.view().row<float>(token, head)[d], token, u))
            << token << " " << head << " " << d;
      }
    }
  }
}

/// Documents of 71 tokens.
constexpr std::array<std::int64_t, 3> kDocuments{30, 1, 40};
constexpr std::int64_t begin_of_document(std::int64_t token) {
  return token < 30 ? 0 : token < 31 ? 30 : 31;
}
constexpr std::int64_t length_of_document(std::int64_t token) {
  return token < 30 ? 30 : token < 31 ? 1 : 40;
}

class InputStyles : public testing::Test {
 protected:
  static constexpr std::uint64_t kSeed = 7;
  Problem problem_ = small_problem(DType::float32);
  Inputs normal_ = make_inputs(problem_, kSeed);

  template <typename Query, typename Key>
  void expect_style(InputStyle style, const Query& query, const Key& key) const {
    const Inputs inputs = make_inputs(problem_, kSeed, style, kDocuments);
    expect_values(inputs.q, normal_.q, problem_.heads_k, kSeed, query);
    expect_values(inputs.k, normal_.k, problem_.heads_k, kSeed, key);
    const auto plain = [](float n, std::int64_t, float) { return n; };
    expect_values(inputs.v, normal_.v, problem_.heads_k, kSeed, plain);
    expect_values(inputs.dout, normal_.dout, problem_.heads_k, kSeed, plain);
  }
};

TEST_F(InputStyles, PeakedOnesAreThreeTimesAsLarge) {
  const auto triple = [](float n, std::int64_t, float) { return 3 * n; };
  expect_style(InputStyle::peaked, triple, triple);
}

TEST_F(InputStyles, TheFirstKeyOfADocumentIsASink) {
  const auto amount = static_cast<float>(10 / std::sqrt(40.0));
  expect_style(
      InputStyle::sink, [](float n, std::int64_t, float u) { return n + u; },
      [&](float n, std::int64_t token, float u) {
        return token == begin_of_document(token) ? amount * u : n;
      });
}

TEST_F(InputStyles, KeysRiseAlongTheirDocument) {
  expect_style(
      InputStyle::rising, [](float n, std::int64_t, float u) { return n + u; },
      [](float n, std::int64_t token, float u) {
        const auto length = static_cast<double>(length_of_document(token));
        const auto slope = static_cast<float>(32 / std::sqrt(40.0) / length);
        return n + slope * static_cast<float>(token - begin_of_document(token)) * u;
      });
}

TEST_F(InputStyles, NamesAreReadBack) {
  for (const std::string_view name : input_style_names()) {
    EXPECT_EQ(to_string(parse_input_style(name).value()), name);
  }
  EXPECT_EQ(parse_input_style("Normal"), std::nullopt);
}

/// Scores of a query head against its KV head's keys, [queries, keys].
std::vector<std::vector<double>> scores_of(const Problem& problem, const Inputs& inputs,
                                           std::int64_t head) {
  std::vector<std::vector<double>> scores;
  const std::int64_t head_k = head * problem.heads_k / problem.heads_q;
  for (std::int64_t q = 0; q < problem.tokens_q; ++q) {
    std::vector<double>& row = scores.emplace_back();
    for (std::int64_t k = 0; k < problem.tokens_k; ++k) {
      double sum = 0;
      for (std::int64_t d = 0; d < problem.head_dim; ++d) {
        sum += double{inputs.q.view().row<float>(q, head)[d]} *
               double{inputs.k.view().row<float>(k, head_k)[d]};
      }
      row.push_back(sum / std::sqrt(problem.head_dim));
    }
  }
  return scores;
}

/// 300 queries and 900 keys of dimension 128, the second of two KV heads.
std::vector<std::vector<double>> scores_of(InputStyle style) {
  Problem problem = small_problem(DType::float32);
  problem.tokens_q = 300;
  problem.tokens_k = 900;
  problem.head_dim = 128;
  return scores_of(problem, make_inputs(problem, 3, style), 5);
}

TEST(InputScores, OfPeakedOnesHaveADeviationOfNine) {
  for (const auto& [style, deviation] :
       {std::pair{InputStyle::normal, 1.0}, std::pair{InputStyle::peaked, 9.0}}) {
    double sum = 0;
    for (const auto& row : scores_of(style)) {
      for (const double score : row) sum += score * score;
    }
    EXPECT_NEAR(std::sqrt(sum / (300 * 900)), deviation, 0.02 * deviation) << to_string(style);
  }
}

TEST(InputScores, GiveTheSinkMostProbability) {
  double worst = 1;
  double mean = 0;
  for (const auto& row : scores_of(InputStyle::sink)) {
    double others = 0;
    for (std::size_t k = 1; k < row.size(); ++k) others += std::exp(row[k] - row[0]);
    worst = std::min(worst, 1 / (1 + others));
    mean += 1 / (1 + others) / 300;
  }
  EXPECT_NEAR(mean, 0.88, 0.02);
  EXPECT_GT(worst, 0.3);
}

TEST(InputScores, RiseAlongTheKeysInTheMean) {
  const auto scores = scores_of(InputStyle::rising);
  constexpr std::size_t kTile = 100;
  std::array<double, 9> means{};
  for (const auto& row : scores) {
    for (std::size_t k = 0; k < row.size(); ++k) means.at(k / kTile) += row[k] / (300 * kTile);
  }
  for (std::size_t tile = 1; tile < means.size(); ++tile) {
    EXPECT_NEAR(means.at(tile) - means.at(tile - 1), 32.0 / 9, 1) << tile;
  }
  for (const auto& row : scores) {  // of every single query, too
    EXPECT_GT(std::ranges::max_element(row) - row.begin(), 600);
  }
}

TEST_F(InputStyles, RowsOfAShardAreThoseOfTheWhole) {
  const Problem problem = small_problem(DType::bfloat16);
  const std::vector<Range> ranges = {{0, 1}, {5, 5}, {29, 33}, {60, 71}};
  for (const InputStyle style : {InputStyle::peaked, InputStyle::sink, InputStyle::rising}) {
    const Inputs whole = make_inputs(problem, 9, style, kDocuments);
    const HostTensor rows(DType::bfloat16, 16, problem.heads_k, problem.head_dim);
    draw_rows(DeviceKind::cpu, rows.view(), 9, InputTensor::k, ranges,
              input_law(problem, style, kDocuments));
    const auto row_bytes = static_cast<std::size_t>(problem.heads_k) * problem.head_dim * 2;
    std::int64_t row = 0;
    for (const Range& range : ranges) {
      for (std::int64_t token = range.begin; token < range.end; ++token, ++row) {
        EXPECT_EQ(std::memcmp(rows.view().row<BFloat16>(row, 0),
                              whole.k.view().row<BFloat16>(token, 0), row_bytes),
                  0)
            << to_string(style) << " " << token;
      }
    }
  }
}

TEST_F(InputStyles, DocumentsThatEndTooEarlyAreAnError) {
  const HostTensor rows(DType::bfloat16, 71, 2, 40);
  const Range all{0, 71};
  const std::array<std::int64_t, 1> documents{70};
  EXPECT_THROW(draw_rows(DeviceKind::cpu, rows.view(), 9, InputTensor::k, {&all, 1},
                         {InputStyle::sink, 2, documents}),
               std::exception);
}

TEST(Inputs, NoTokensGiveNoValues) {
  Problem problem = small_problem(DType::float32);
  problem.tokens_q = 0;
  const Inputs inputs = make_inputs(problem, 1);
  EXPECT_EQ(inputs.q.bytes(), 0);
  EXPECT_GT(inputs.k.bytes(), 0);
}

}  // namespace
}  // namespace longca
