#include "attention/reference/cuda/self_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attention/reference/bounds.h"
#include "attention/reference/cuda/copy_head.h"
#include "attention/reference/float64_samples.h"
#include "core/error.h"
#include "core/python_random.h"
#include "core/rounding.h"
#include "core/thread_pool.h"
#include "mask/range.h"

namespace longca {
namespace {

constexpr double kRoundoff = 0x1p-24;
constexpr std::int64_t kRows = 8;
constexpr std::int64_t kKeys = 4;
constexpr std::int64_t kChunk = 8192;  ///< queries of a key per task

/// The samples: rows of one query head and keys of its KV head.
struct Samples {
  std::size_t index_k = 0;
  std::size_t index_q = 0;
  std::vector<std::int64_t> rows, keys;
};

/// The last token of the output's tiles and random others, ascending.
std::vector<std::int64_t> draw_tokens(const DeviceResults::Output& output, std::int64_t count,
                                      PythonRandom& random) {
  std::vector<std::int64_t> drawn;
  if (output.drawn.empty()) return drawn;
  const std::int64_t last_tile = std::ssize(output.drawn) - 1;
  const auto end_of = [&](std::int64_t tile) {
    return std::min(output.tokens, (tile + 1) * kTile) - 1;
  };
  drawn.push_back(end_of(output.drawn[static_cast<std::size_t>(last_tile)]));
  for (; count > 1; --count) {
    const std::int64_t tile = output.drawn[static_cast<std::size_t>(random.randint(0, last_tile))];
    drawn.push_back(random.randint(tile * kTile, end_of(tile)));
  }
  std::ranges::sort(drawn);
  drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
  return drawn;
}

Samples draw_samples(const ReferenceProblem& problem, const DeviceResults& results,
                     std::uint64_t seed) {
  PythonRandom random(seed);
  Samples samples;
  const auto last = [](const auto& values) { return static_cast<std::int64_t>(values.size()) - 1; };
  const std::int64_t group = problem.shape.group_size();
  const std::int64_t index_k = random.randint(0, last(results.heads_k()));
  samples.index_k = static_cast<std::size_t>(index_k);
  samples.index_q = static_cast<std::size_t>(index_k * group + random.randint(0, group - 1));
  samples.rows = draw_tokens(results.o(), kRows, random);
  samples.keys = draw_tokens(results.dk(), kKeys, random);
  return samples;
}

/// Copies the values of one head and token to the host.
std::vector<float> values_of(const DeviceResults::Output& output, std::size_t head_index,
                             std::int64_t token, int dim) {
  std::vector<float> values(static_cast<std::size_t>(dim));
  const std::int64_t row = static_cast<std::int64_t>(head_index) * output.tokens + token;
  Device::get(DeviceKind::cuda)
      .copy(values.data(), output.values.as<float>() + row * dim, std::int64_t{dim} * 4);
  return values;
}

/// The error bound of a sum of `terms` terms P · x in units of float32 roundoff: the roundings of
/// the sum grow with √terms, those of the scores with the largest score. Near a softcap slopes are
/// off by 4 units in all keys alike, so that errors add up as the terms do and not as their
/// squares; as much again is left to P. dS, whose `softcap` is that of the problem, has the score's
/// error by its slope too. A float32 problem is computed in float64 and rounded once.
double noise_steps(const ReferenceProblem& problem, const DeviceResults& results,
                   std::int64_t terms, double softcap = 0) {
  if (problem.shape.dtype == DType::float32) return 2;
  TileTerms scores{.softcap = softcap};
  for (const TileStatistics& tile : results.o().statistics) {
    scores.score = std::max(scores.score, tile.score);
  }
  const double alike = problem.shape.softcap > 0 ? 9 : 1;
  return 32 + 2 * scores.score * (1 + scores.steepness()) +
         alike * std::sqrt(static_cast<double>(terms));
}

double steps_of_gradient(const ReferenceProblem& problem, const DeviceResults& results,
                         std::int64_t terms) {
  return noise_steps(problem, results, terms, static_cast<double>(problem.shape.softcap));
}

/// Throws unless ‖found − expected‖ is within `steps` roundings of float32.
void expect_noise(const char* what, int head, std::int64_t token, const std::vector<float>& found,
                  const std::vector<double>& expected, double magnitude, double steps) {
  double squared = 0;
  double error_squared = 0;
  for (std::size_t c = 0; c < found.size(); ++c) {
    const double error = double{found[c]} - expected[c];
    squared += expected[c] * expected[c];
    error_squared += error * error;
  }
  const double bound = kRoundoff * steps * (std::sqrt(squared) + magnitude);
  if (std::sqrt(error_squared) <= bound) return;  // false for NaN
  throw InternalError(fmt::format(
      "the reference itself disagrees with float64: its {} of head {}, token {}, is off "
      "by {:.3g} in norm of {:.4g}, float32 noise is {:.3g}",
      what, head, token, std::sqrt(error_squared), std::sqrt(squared), bound));
}

void expect_lse(const DeviceResults& results, std::size_t head_index, std::int64_t row,
                double exact) {
  const DeviceResults::Output& o = results.o();
  const auto at = static_cast<std::int64_t>(head_index);
  const double found = results.rows()[static_cast<std::size_t>(at * o.tokens + row)].lse;
  const TileStatistics& tile = o.statistics[static_cast<std::size_t>(at * o.tiles() + row / kTile)];
  if (found == exact) return;  // both −∞, too
  const double bound = lse_bound(tile.score, exact, 0) / 4;
  if (std::abs(found - exact) <= bound) return;
  throw InternalError(
      fmt::format("the reference itself disagrees with float64: its lse of head {}, row {}, is "
                  "{:.9g} instead of {:.9g}",
                  o.heads[head_index], row, found, exact));
}

/// Loads the query head's tensors and, on the first call, those of its KV head.
void load_head(const ReferenceProblem& problem, int head_q, HeadCopier& copier, HeadValues& head) {
  const Inputs& inputs = *problem.inputs;
  copier.copy(inputs.q.view(), head_q, head.q);
  copier.copy(inputs.dout.view(), head_q, head.dout);
  if (problem.shape.sink) {
    float sink = 0;
    Device::get(DeviceKind::cuda).copy(&sink, inputs.sink_logits() + head_q, sizeof sink);
    head.sink = sink;
  }
  if (head.dim == problem.shape.head_dim) return;
  const int head_k = head_q / problem.shape.group_size();
  copier.copy(inputs.k.view(), head_k, head.k);
  copier.copy(inputs.v.view(), head_k, head.v);
  head.dim = problem.shape.head_dim;
  head.value_dim = problem.shape.value_dim();
  head.scale = static_cast<double>(problem.shape.scale());
  head.softcap = static_cast<double>(problem.shape.softcap);
}

/// exact_row of the sampled rows; multithreaded.
std::vector<ExactRow> exact_rows(const ReferenceProblem& problem, const HeadValues& head,
                                 int head_q, const std::vector<std::int64_t>& rows) {
  std::vector<ExactRow> exact(rows.size());
  ThreadPool::global().parallel_for(
      static_cast<std::int64_t>(rows.size()), [&](std::int64_t i, int) {
        const std::int64_t row = rows[static_cast<std::size_t>(i)];
        exact[static_cast<std::size_t>(i)] =
            exact_row(head, row, problem.mask.key_intervals(problem.mask_head(head_q), row));
      });
  return exact;
}

/// The sampled query head: its values, and its sampled rows in float64.
struct SampledHead {
  SampledHead(const ReferenceProblem& problem, const DeviceResults& results, const Samples& samples)
      : number(results.heads_q()[samples.index_q]) {
    load_head(problem, number, copier, values);
    rows = exact_rows(problem, values, number, samples.rows);
  }

  int number;
  HeadCopier copier;
  HeadValues values;
  std::vector<ExactRow> rows;
};

/// A sampled key's sum over query heads and its number of terms.
struct KeySum {
  ExactKey sum;
  std::int64_t terms = 0;
};

/// Adds one query head's contribution, multithreaded over chunks of its queries.
void add_head(const ReferenceProblem& problem, const DeviceResults& results, std::size_t index_q,
              const std::vector<RowStatistic>& all_rows, const HeadValues& head,
              const std::vector<std::int64_t>& keys, std::vector<KeySum>& sums) {
  const int head_q = results.heads_q()[index_q];
  const std::int64_t chunks = ceil_div(problem.shape.tokens_q, kChunk);
  std::vector<ExactKey> parts(keys.size() * static_cast<std::size_t>(chunks));
  std::vector<std::vector<Range>> ranges(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ranges[i] = problem.mask.query_intervals(problem.mask_head(head_q), keys[i]);
    sums[i].terms += total_size(ranges[i]);
  }
  const RowStatistic* rows =
      all_rows.data() + static_cast<std::int64_t>(index_q) * problem.shape.tokens_q;
  const RowLookup lookup{[&](std::int64_t row) { return rows[row].lse; },
                         [&](std::int64_t row) { return rows[row].delta; }};
  ThreadPool::global().parallel_for(
      static_cast<std::int64_t>(parts.size()), [&](std::int64_t i, int) {
        const auto key = static_cast<std::size_t>(i / chunks);
        const Range chunk{i % chunks * kChunk, (i % chunks + 1) * kChunk};
        std::vector<Range> cut;
        for (const Range& range : ranges[key]) {
          const Range both{std::max(range.begin, chunk.begin), std::min(range.end, chunk.end)};
          if (!both.empty()) cut.push_back(both);
        }
        parts[static_cast<std::size_t>(i)] = exact_key(head, keys[key], cut, lookup);
      });
  for (std::size_t i = 0; i < parts.size(); ++i) {
    add(parts[i], sums[i / static_cast<std::size_t>(chunks)].sum);
  }
}

void check_keys(const ReferenceProblem& problem, const DeviceResults& results,
                const Samples& samples, HeadCopier& copier, HeadValues& head) {
  const auto group = static_cast<std::size_t>(problem.shape.group_size());
  std::vector<KeySum> sums(samples.keys.size());
  const std::vector<RowStatistic> rows = results.rows_of_keys();
  for (std::size_t i = 0; i < group; ++i) {
    const std::size_t head_index = samples.index_k * group + i;
    load_head(problem, results.heads_q()[head_index], copier, head);
    add_head(problem, results, head_index, rows, head, samples.keys, sums);
  }
  const int head_k = results.heads_k()[samples.index_k];
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto& [exact, terms] = sums[i];
    const std::int64_t key = samples.keys[i];
    if (exact.dk.empty()) continue;  // no queries at all
    expect_noise("dk", head_k, key, values_of(results.dk(), samples.index_k, key, head.dim),
                 exact.dk, exact.dk_magnitude, steps_of_gradient(problem, results, terms));
    expect_noise("dv", head_k, key, values_of(results.dv(), samples.index_k, key, head.value_dim),
                 exact.dv, exact.dv_magnitude, noise_steps(problem, results, terms));
  }
}

}  // namespace

void check_forward_samples(const ReferenceProblem& problem, const DeviceResults& results,
                           std::uint64_t seed) {
  const Samples samples = draw_samples(problem, results, seed);
  const SampledHead head(problem, results, samples);
  for (std::size_t i = 0; i < head.rows.size(); ++i) {
    const std::int64_t row = samples.rows[i];
    const ExactRow& exact = head.rows[i];
    expect_lse(results, samples.index_q, row, exact.lse);
    expect_noise("o", head.number, row,
                 values_of(results.o(), samples.index_q, row, head.values.value_dim), exact.o,
                 exact.o_magnitude, noise_steps(problem, results, problem.shape.tokens_k));
  }
}

void check_gradient_samples(const ReferenceProblem& problem, const DeviceResults& results,
                            std::uint64_t seed) {
  const Samples samples = draw_samples(problem, results, seed);
  SampledHead head(problem, results, samples);
  for (std::size_t i = 0; i < head.rows.size(); ++i) {
    const std::int64_t row = samples.rows[i];
    const ExactRow& exact = head.rows[i];
    expect_noise("dq", head.number, row,
                 values_of(results.dq(), samples.index_q, row, head.values.dim), exact.dq,
                 exact.dq_magnitude, steps_of_gradient(problem, results, problem.shape.tokens_k));
  }
  check_keys(problem, results, samples, head.copier, head.values);
}

}  // namespace longca
