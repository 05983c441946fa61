#include "parallel/schemes/build/joint_costs.h"

#include <algorithm>

#include "mask/range.h"
#include "parallel/plan/rates.h"

namespace longca {
namespace {

/// Two results of a row are read, and the merged one is written.
constexpr double kTouchesOfAMergedRow = 3;
/// A float32 sum is read, and for an own key written as half as many bytes: 4 of 2, or 6.
constexpr double kTouchesOfASum = 2;
constexpr double kTouchesOfARoundedKey = 3;
/// O and dO.
constexpr double kRowTensors = 2;

double seconds_of(const std::vector<double>& calls, double per_cell, double per_call) {
  double sum = 0;
  for (const double cells : calls) sum += cells > 0 ? cells * per_cell + per_call : 0;
  return sum;
}

}  // namespace

JointCosts::JointCosts(const Problem& problem, std::int64_t own_tokens, const CastTraffic& traffic,
                       const Mask& rows_of_all)
    : problem_(problem),
      own_tokens_(own_tokens),
      sent_(traffic.sent_tokens),
      rows_of_all_(rows_of_all) {
  const std::int64_t most = std::max(total_size(traffic.foreign), traffic.sent_tokens);
  if (most == 0) return;
  const double elements = 2.0 * problem_.heads_k * problem_.head_dim * static_cast<double>(most);
  const auto messages = static_cast<double>(traffic.messages);
  fetch_ =
      rates::kSecondsToBegin +
      rates::transfer_seconds(elements * static_cast<double>(size_of(problem_.dtype)), messages);
  reduce_ = rates::transfer_seconds(elements * 4, messages);
}

double JointCosts::forward_by_rows(const std::vector<Range>& alone,
                                   const std::vector<Range>& joint) const {
  const auto seconds = [&](const std::vector<Range>& rows) {
    return forward_of(cells_of(rows, rates::kForwardKeysPerRow));
  };
  return std::max(seconds(alone), fetch_) + seconds(joint);
}

double JointCosts::backward_by_rows(const std::vector<Range>& alone,
                                    const std::vector<Range>& joint, std::size_t early) const {
  if (!problem_.backward) return 0;
  const std::vector<double> cells = cells_of(alone, rates::kBackwardKeysPerRow);
  const auto middle = cells.begin() + static_cast<std::ptrdiff_t>(early);
  const double before = backward_of({cells.begin(), middle});
  const double after = backward_of({middle, cells.end()});
  const double terms = row_terms();
  return std::max(before + terms, fetch_) - terms +
         backward_of(cells_of(joint, rates::kBackwardKeysPerRow)) + std::max(after, reduce_) +
         rounding(total_size(joint));
}

double JointCosts::by_keys(const std::vector<Range>& calls, const Mask& foreign) const {
  const double rows = static_cast<double>(total_size(calls));
  const auto own = [&](double keys_per_row) {
    return rows_of_all_.mean_area() - foreign.mean_area() +
           keys_per_row * static_cast<double>(own_tokens_);
  };
  const auto others = [&](double keys_per_row) {
    const double each = (foreign.mean_area() + keys_per_row * rows) /
                        static_cast<double>(std::max<std::size_t>(1, calls.size()));
    return std::vector<double>(calls.size(), each);
  };
  const double merging = kTouchesOfAMergedRow * row_seconds(problem_.heads_q) * rows;
  const double forward = std::max(forward_of({own(rates::kForwardKeysPerRow)}), fetch_) +
                         forward_of(others(rates::kForwardKeysPerRow)) + merging;
  if (!problem_.backward) return forward;
  const double half = backward_of({own(rates::kBackwardKeysPerRow) / 2}) -
                      rates::kSecondsPerBackwardCall + rates::kSecondsPerHalvedCall;
  const double sums_ready =
      std::max(half, fetch_) + backward_of(others(rates::kBackwardKeysPerRow));
  return forward + sums_ready + std::max(half, reduce_) + merging + rounding(own_tokens_);
}

std::vector<double> JointCosts::cells_of(const std::vector<Range>& rows,
                                         double keys_per_row) const {
  const std::vector<Range> keys = {{0, rows_of_all_.k_tokens()}};
  std::vector<double> cells;
  for (const Range range : rows) {
    cells.push_back(rows_of_all_.sub_mask(std::vector{range}, keys).mean_area() +
                    keys_per_row * static_cast<double>(range.size()));
  }
  return cells;
}

double JointCosts::forward_of(const std::vector<double>& calls) const {
  const double flops = 4.0 * problem_.heads_q * problem_.head_dim;
  return seconds_of(calls, flops / rates::kForwardTileFlopsPerSecond,
                    rates::kSecondsPerForwardCall);
}

double JointCosts::backward_of(const std::vector<double>& calls) const {
  const double flops = 10.0 * problem_.heads_q * problem_.head_dim;
  return seconds_of(calls, flops / rates::kBackwardTileFlopsPerSecond,
                    rates::kSecondsPerBackwardCall);
}

double JointCosts::row_seconds(int heads) const {
  return static_cast<double>(heads * problem_.head_dim * size_of(problem_.dtype)) /
         rates::kMemoryBytesPerSecond;
}

double JointCosts::row_terms() const {
  return kRowTensors * row_seconds(problem_.heads_q) * static_cast<double>(own_tokens_) *
         rates::kMemoryBytesPerSecond / rates::kRowTermBytesPerSecond;
}

double JointCosts::rounding(std::int64_t own_keys) const {
  const double touches = kTouchesOfARoundedKey * static_cast<double>(own_keys) +
                         kTouchesOfASum * static_cast<double>(sent_);
  return rates::kSecondsPerCall + touches * row_seconds(2 * problem_.heads_k);
}

}  // namespace longca
