#include "mask/lengths.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>

#include "core/error.h"
#include "core/nearest.h"
#include "mask/mask_slice.h"
#include "mask/own_file.h"
#include "mask/own_lengths.h"

namespace longca {
namespace {

constexpr std::string_view kLongSuffix = "+long";
/// Share and bounds of the long documents of a "+long" variant (LongCA-bench).
constexpr double kShortShare = 0.4;
constexpr std::int64_t kLongLow = 8192;
constexpr std::int64_t kLongHigh = 30720;

/// A histogram of document lengths: bins [low, high], both ends included.
struct Histogram {
  std::string name;
  std::vector<Range> bins;  ///< `end` is inclusive here
  std::vector<double> weights;
  std::vector<double> cumulative;  ///< of the weights divided by their sum

  void finish() {
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& weight : weights) weight /= sum;
    std::partial_sum(weights.begin(), weights.end(), std::back_inserter(cumulative));
  }

  std::int64_t sample(PythonRandom& random) const {
    const Range bin = bins[random.choice(cumulative)];
    return random.randint(bin.begin, bin.end);
  }
};

std::string_view next_field(std::string_view& line) {
  const std::size_t comma = std::min(line.find(','), line.size());
  const std::string_view field = line.substr(0, comma);
  line.remove_prefix(std::min(comma + 1, line.size()));
  return field;
}

template <typename Number>
Number number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  LONGCA_CHECK(error == std::errc() && end == text.data() + text.size(),
               "length_distributions.csv has the number '{}'", text);
  return value;
}

/// Rows of configs/length_distributions.csv: distribution,low,high,weight.
std::vector<Histogram> parse_histograms(std::string_view csv) {
  std::vector<Histogram> histograms;
  csv.remove_prefix(csv.find('\n') + 1);
  while (!csv.empty()) {
    const std::size_t end = std::min(csv.find('\n'), csv.size());
    std::string_view line = csv.substr(0, end);
    csv.remove_prefix(std::min(end + 1, csv.size()));
    if (line.empty()) continue;
    const std::string_view name = next_field(line);
    if (histograms.empty() || histograms.back().name != name) {
      histograms.push_back({std::string(name), {}, {}, {}});
    }
    Histogram& histogram = histograms.back();
    const auto low = number<std::int64_t>(next_field(line));
    histogram.bins.push_back({low, number<std::int64_t>(next_field(line))});
    histogram.weights.push_back(number<double>(next_field(line)));
  }
  for (Histogram& histogram : histograms) histogram.finish();
  return histograms;
}

const std::vector<Histogram>& histograms() {
  static const std::vector<Histogram> all = parse_histograms(kLengthDistributionsCsv);
  return all;
}

struct Distribution {
  const Histogram& histogram;
  bool with_long = false;
};

Distribution find_distribution(const std::string& name) {
  std::string_view base = name;
  const bool with_long = base.ends_with(kLongSuffix);
  if (with_long) base.remove_suffix(kLongSuffix.size());
  for (const Histogram& histogram : histograms()) {
    if (histogram.name == base) return {histogram, with_long};
  }
  if (without_hash(name) != name) {
    throw_input_error("the documents of lengths {} were not read: give lengths=FILE", name);
  }
  throw_input_error("unknown length distribution '{}'{}", name,
                    suggestion(name, length_distribution_names()));
}

template <typename Draw>
void fill(std::vector<std::int64_t>& lengths, std::int64_t tokens, Draw&& draw) {
  while (tokens > 0) {
    lengths.push_back(std::max<std::int64_t>(1, std::min(draw(), tokens)));
    tokens -= lengths.back();
  }
}

/// Of the document lengths, by interpolation in the bins.
std::pair<double, double> mean_and_median(const Histogram& histogram) {
  double mean = 0;
  double median = 0;
  for (std::size_t i = 0; i < histogram.bins.size(); ++i) {
    const auto low = static_cast<double>(histogram.bins[i].begin);
    const auto high = static_cast<double>(histogram.bins[i].end);
    mean += histogram.weights[i] * (low + high) / 2;
    const double before = i == 0 ? 0 : histogram.cumulative[i - 1];
    if (before < 0.5 && histogram.cumulative[i] >= 0.5) {
      median = low + (high - low) * (0.5 - before) / histogram.weights[i];
    }
  }
  return {mean, median};
}

}  // namespace

std::span<const std::string> length_distribution_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Histogram& histogram : histograms()) all.push_back(histogram.name);
    for (const Histogram& histogram : histograms()) {
      all.push_back(histogram.name + std::string(kLongSuffix));
    }
    return all;
  }();
  return names;
}

std::string describe_length_distribution(const std::string& name) {
  const auto [histogram, with_long] = find_distribution(name);
  if (with_long) {
    return fmt::format(
        "LongCA-bench's histogram {} for {:.0f} % of the tokens, the rest in documents of {} to {}",
        histogram.name, 100 * kShortShare, kLongLow, kLongHigh);
  }
  const auto [mean, median] = mean_and_median(histogram);
  return fmt::format("LongCA-bench's histogram {}: mean {:.0f}, median {:.0f} tokens",
                     histogram.name, mean, median);
}

std::vector<std::int64_t> sample_lengths(const std::string& distribution, std::int64_t tokens,
                                         PythonRandom& random) {
  if (tokens < 0) throw_input_error("tokens = {}: at least 0", tokens);
  if (const OwnLengths* own = find_own_lengths(distribution)) {
    return first_documents(*own, distribution, tokens);
  }
  const auto [histogram, with_long] = find_distribution(distribution);
  std::vector<std::int64_t> lengths;
  const auto draw_short = [&h = histogram, &random] { return h.sample(random); };
  if (!with_long) {
    fill(lengths, tokens, draw_short);
    return lengths;
  }
  const auto short_tokens = static_cast<std::int64_t>(kShortShare * static_cast<double>(tokens));
  fill(lengths, short_tokens, draw_short);
  fill(lengths, tokens - short_tokens, [&] { return random.randint(kLongLow, kLongHigh); });
  random.shuffle(lengths);
  return lengths;
}

}  // namespace longca
