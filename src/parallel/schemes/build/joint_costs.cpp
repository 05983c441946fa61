#include "parallel/schemes/build/joint_costs.h"

#include <algorithm>

#include "mask/total_size.h"
#include "parallel/plan/rates.h"

namespace longca {
namespace {

/// Two results of a row are read, and the merged one is written.
constexpr double kTouchesOfAMergedRow = 3;
/// A float32 sum is read and written as half as many bytes: 6 of 2.
constexpr double kTouchesOfARoundedKey = 3;

double seconds_of(const std::vector<double>& calls, double per_cell, double per_call) {
  double sum = 0;
  for (const double cells : calls) sum += cells > 0 ? cells * per_cell + per_call : 0;
  return sum;
}

double transfer_of(double bytes, std::int64_t messages) {
  return bytes / rates::kLinkBytesPerSecond + rates::kSecondsPerExchange +
         static_cast<double>(messages) * rates::kSecondsPerMessage;
}

}  // namespace

JointCosts::JointCosts(const Problem& problem, std::int64_t own_tokens, const CastTraffic& traffic,
                       const Mask& rows_of_all)
    : problem_(problem), own_tokens_(own_tokens), rows_of_all_(rows_of_all) {
  const std::int64_t most = std::max(total_size(traffic.foreign), traffic.sent_tokens);
  if (most == 0) return;
  const double elements = 2.0 * problem_.heads_k * problem_.head_dim * static_cast<double>(most);
  fetch_ = transfer_of(elements * static_cast<double>(size_of(problem_.dtype)), traffic.messages);
  reduce_ = transfer_of(elements * 4, traffic.messages);
}

double JointCosts::forward_by_rows(const std::vector<Range>& alone,
                                   const std::vector<Range>& joint) const {
  return std::max(forward_of(cells_of(alone)), fetch_) + forward_of(cells_of(joint));
}

double JointCosts::backward_by_rows(const std::vector<Range>& alone,
                                    const std::vector<Range>& joint, std::size_t early) const {
  if (!problem_.backward) return 0;
  const std::vector<double> cells = cells_of(alone);
  const auto middle = cells.begin() + static_cast<std::ptrdiff_t>(early);
  const double before = backward_of({cells.begin(), middle});
  const double after = backward_of({middle, cells.end()});
  return std::max(before, fetch_) + backward_of(cells_of(joint)) + std::max(after, reduce_) +
         rounding();
}

double JointCosts::by_keys(const std::vector<Range>& calls, const Mask& foreign) const {
  const double rows = static_cast<double>(total_size(calls));
  const double own = rows_of_all_.mean_area() - foreign.mean_area() +
                     rates::kKeysPerRow * static_cast<double>(own_tokens_);
  const double each = (foreign.mean_area() + rates::kKeysPerRow * rows) /
                      static_cast<double>(std::max<std::size_t>(1, calls.size()));
  const std::vector<double> others(calls.size(), each);
  const double merging = kTouchesOfAMergedRow * row_seconds(problem_.heads_q) * rows;
  const double forward = std::max(forward_of({own}), fetch_) + forward_of(others) + merging;
  if (!problem_.backward) return forward;
  const double half =
      backward_of({own / 2}) - rates::kSecondsPerBackwardCall + rates::kSecondsPerHalvedCall;
  const double sums_ready = std::max(half, fetch_) + backward_of(others);
  return forward + sums_ready + std::max(half, reduce_) + merging + rounding();
}

std::vector<double> JointCosts::cells_of(const std::vector<Range>& rows) const {
  const std::vector<Range> keys = {{0, rows_of_all_.k_tokens()}};
  std::vector<double> cells;
  for (const Range range : rows) {
    cells.push_back(rows_of_all_.sub_mask(std::vector{range}, keys).mean_area() +
                    rates::kKeysPerRow * static_cast<double>(range.size()));
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

double JointCosts::rounding() const {
  return kTouchesOfARoundedKey * row_seconds(2 * problem_.heads_k) *
         static_cast<double>(own_tokens_);
}

}  // namespace longca
