#include "bench/ranks/rank_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/output_file.h"
#include "parallel/plan/explain.h"

namespace longca {
namespace {

using Json = nlohmann::ordered_json;

/// A short name for an op's bar.
class OpName {
 public:
  explicit OpName(const PlanSums& sums) : sums_(sums) {}

  std::string operator()(const Exchange& exchange) const {
    const std::int64_t bytes = std::max(sums_.bytes_sent, sums_.bytes_received);
    return fmt::format("{} {}", to_string(exchange.pattern), plan_bytes(bytes));
  }
  std::string operator()(const Attend& a) const { return attends("attend", a.q, a.k); }
  std::string operator()(const AttendBackward& a) const { return attends("gradients", a.q, a.k); }
  std::string operator()(const Copy&) const { return "copy"; }
  std::string operator()(const Add&) const { return "add"; }
  std::string operator()(const Convert&) const { return "round"; }
  std::string operator()(const Total&) const { return "add and round"; }
  std::string operator()(const Clear&) const { return "clear"; }
  std::string operator()(const JoinSinks&) const { return "join sinks"; }
  std::string operator()(const SinkGradients&) const { return "gradients of sinks"; }

 private:
  static std::string attends(const char* verb, const Region& q, const Region& k) {
    return fmt::format("{} {} × {}", verb, q.tokens.size(), k.tokens.size());
  }
  const PlanSums& sums_;
};

Json event_of(const RankPlan& plan, const Op& op, const OpTime& time, int head_dim, DType dtype) {
  const PlanSums sums = sum_plan(plan, {op}, head_dim, dtype);
  Json args = {{"op", time.op}, {"step", op.step}};
  if (sums.cells > 0) args["cells"] = sums.cells;
  if (sums.bytes_sent > 0) args["bytes_sent"] = sums.bytes_sent;
  if (sums.bytes_received > 0) args["bytes_received"] = sums.bytes_received;
  return {{"name", std::visit(OpName(sums), op.what)},
          {"ph", "X"},
          {"pid", plan.rank},
          {"tid", static_cast<int>(op.lane)},
          {"ts", time.begin_ms * 1e3},
          {"dur", (time.end_ms - time.begin_ms) * 1e3},
          {"args", std::move(args)}};
}

Json event_of_rows(const RankPlan& plan, const OpTime& time) {
  return {{"name", "rows of later steps"},
          {"ph", "X"},
          {"pid", plan.rank},
          {"tid", static_cast<int>(Lane::compute)},
          {"ts", time.begin_ms * 1e3},
          {"dur", (time.end_ms - time.begin_ms) * 1e3},
          {"args", Json::object()}};
}

Json name_of(const char* what, int rank, int lane, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", lane}, {"args", {{"name", name}}}};
}

}  // namespace

Status can_trace(Pass pass) {
  if (pass != Pass::step) return {};
  return Status::unsupported("one pass is traced, not a step; choose pass=forward or backward");
}

std::string trace_of_rank(const RankPlan& plan, const std::vector<Op>& ops,
                          std::span<const OpTime> times, int head_dim, DType dtype) {
  Json events = Json::array();
  events.push_back(name_of("process_name", plan.rank, 0, fmt::format("rank {}", plan.rank)));
  for (const auto& [lane, name] :
       {std::pair{Lane::compute, "compute"}, {Lane::communication, "communication"}}) {
    events.push_back(name_of("thread_name", plan.rank, static_cast<int>(lane), name));
  }
  std::vector<OpTime> ordered(times.begin(), times.end());
  std::ranges::stable_sort(ordered, {}, &OpTime::begin_ms);
  for (const OpTime& time : ordered) {
    if (time.op == kEarlyRows) {
      events.push_back(event_of_rows(plan, time));
      continue;
    }
    const Op& op = ops.at(static_cast<std::size_t>(time.op));
    events.push_back(event_of(plan, op, time, head_dim, dtype));
  }
  return events.dump();
}

void write_trace(const std::filesystem::path& file, const Case& c,
                 std::span<const std::string> ranks) {
  Json events = Json::array();
  for (const std::string& rank : ranks) {
    for (Json& event : Json::parse(rank)) events.push_back(std::move(event));
  }
  const Json trace = {
      {"displayTimeUnit", "ms"}, {"otherData", {{"case", c.key()}}}, {"traceEvents", events}};
  replace_file(file, trace.dump(1) + '\n');
}

}  // namespace longca
