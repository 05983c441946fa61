#include "parallel/schemes/build/joint_costs.h"

#include <algorithm>

#include "cost/schedule.h"
#include "mask/range.h"

namespace longca {

JointCosts::JointCosts(const ParallelProblem& problem, std::int64_t own_tokens,
                       const CastTraffic& traffic, const Mask& rows_of_all)
    : platform_(*problem.platform),
      shape_(problem.shape()),
      backward_(problem.problem.backward),
      own_tokens_(own_tokens),
      sent_(traffic.sent_tokens),
      rows_of_all_(rows_of_all),
      forward_call_(cost::slice_call(platform_, shape_, cost::Pass::forward)),
      backward_call_(cost::slice_call(platform_, shape_, cost::Pass::backward)) {
  const std::int64_t keys = std::max(total_size(traffic.foreign), traffic.sent_tokens);
  if (keys == 0) return;
  const auto count = static_cast<double>(keys);
  const auto messages = static_cast<double>(traffic.messages);
  exchange_ = cost::exchange_seconds(platform_, shape_, count, messages, count, messages);
}

double JointCosts::forward_by_rows(const std::vector<Range>& alone,
                                   const std::vector<Range>& joint) const {
  return std::max(seconds_of(alone, forward_call_), exchange_.fetch) +
         seconds_of(joint, forward_call_);
}

double JointCosts::backward_by_rows(const std::vector<Range>& alone,
                                    const std::vector<Range>& joint, std::size_t early) const {
  if (!backward_) return 0;
  const auto middle = alone.begin() + static_cast<std::ptrdiff_t>(early);
  const cost::RowSchedule calls = {
      .before = seconds_of({alone.begin(), middle}, backward_call_),
      .row_terms = cost::row_term_seconds(platform_, shape_, static_cast<double>(own_tokens_)),
      .joint = seconds_of(joint, backward_call_),
      .after = seconds_of({middle, alone.end()}, backward_call_)};
  return cost::end_by_rows(calls, exchange_) +
         cost::rounding_seconds(platform_, shape_, static_cast<double>(total_size(joint)),
                                static_cast<double>(sent_));
}

double JointCosts::by_keys(const std::vector<Range>& calls, const Mask& foreign) const {
  const auto rows = static_cast<double>(total_size(calls));
  const auto own_cells = [&](const cost::CallCost& call) {
    return call.cells(rows_of_all_.mean_area() - foreign.mean_area(),
                      static_cast<double>(own_tokens_));
  };
  const auto others = [&](const cost::CallCost& call) {
    const double each = call.cells(foreign.mean_area(), rows) /
                        static_cast<double>(std::max<std::size_t>(1, calls.size()));
    double sum = 0;
    for (std::size_t i = 0; i < calls.size(); ++i) sum += call.seconds(each);
    return sum;
  };
  const double merging = cost::merge_seconds(platform_, shape_, rows);
  const double forward =
      std::max(forward_call_.seconds(own_cells(forward_call_)), exchange_.fetch) +
      others(forward_call_) + merging;
  if (!backward_) return forward;
  const double own_half =
      cost::slice_half_heads_call(platform_, shape_).seconds(own_cells(backward_call_) / 2);
  return forward + cost::end_by_keys(own_half, others(backward_call_), exchange_) + merging +
         cost::rounding_seconds(platform_, shape_, static_cast<double>(own_tokens_),
                                static_cast<double>(sent_));
}

double JointCosts::seconds_of(const std::vector<Range>& rows, const cost::CallCost& call) const {
  const std::vector<Range> keys = {{0, rows_of_all_.k_tokens()}};
  double sum = 0;
  for (const Range range : rows) {
    const double allowed = rows_of_all_.sub_mask(std::vector{range}, keys).mean_area();
    sum += call.seconds(call.cells(allowed, static_cast<double>(range.size())));
  }
  return sum;
}

}  // namespace longca
