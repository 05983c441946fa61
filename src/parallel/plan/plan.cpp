#include "parallel/plan/plan.h"

#include <array>

namespace longca {
namespace {

/// Visitor out of lambdas.
template <typename... Visits>
struct Overloaded : Visits... {
  using Visits::operator()...;
};
template <typename... Visits>
Overloaded(Visits...) -> Overloaded<Visits...>;  // which clang does not deduce before version 17

double cells_of(const RankPlan& plan, int mask, const Region& q) {
  const Mask& m = plan.masks[static_cast<std::size_t>(mask)];
  return m.mean_area() * static_cast<double>(q.heads.size());
}

}  // namespace

std::string_view to_string(TensorRole role) {
  constexpr std::array<std::string_view, 9> kNames = {"q",    "k",  "v",  "o", "lse",
                                                      "dout", "dq", "dk", "dv"};
  return kNames[static_cast<std::size_t>(role)];
}

std::string_view to_string(Pattern pattern) {
  constexpr std::array<std::string_view, 6> kNames = {
      "send_receive", "all_to_all", "all_gather", "reduce_scatter", "group_cast", "group_reduce"};
  return kNames[static_cast<std::size_t>(pattern)];
}

Region RankPlan::whole(int index) const {
  const PlanBuffer& buffer = buffers[static_cast<std::size_t>(index)];
  return {index, {0, buffer.tokens}, {0, buffer.heads}};
}

std::int64_t element_size(const PlanBuffer& buffer, DType dtype) {
  return buffer.float32 || buffer.role == TensorRole::lse ? 4 : size_of(dtype);
}

std::int64_t region_bytes(const RankPlan& plan, const Region& region, int head_dim, DType dtype) {
  const PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(region.buffer)];
  const std::int64_t dim = buffer.role == TensorRole::lse ? 1 : head_dim;
  return region.tokens.size() * region.heads.size() * dim * element_size(buffer, dtype);
}

PlanSums sum_plan(const RankPlan& plan, const std::vector<Op>& ops, int head_dim, DType dtype) {
  PlanSums sums;
  const auto bytes = [&](const Message& m) {
    return region_bytes(plan, m.region, head_dim, dtype);
  };
  for (const Op& op : ops) {
    std::visit(
        Overloaded{[&](const Exchange& exchange) {
                     for (const Message& m : exchange.sends) sums.bytes_sent += bytes(m);
                     for (const Message& m : exchange.receives) {
                       sums.bytes_received += bytes(m);
                     }
                     sums.messages += static_cast<std::int64_t>(exchange.sends.size());
                   },
                   [&](const Attend& a) { sums.cells += cells_of(plan, a.mask, a.q); },
                   [&](const AttendBackward& a) { sums.cells += cells_of(plan, a.mask, a.q); },
                   [](const auto&) {}},
        op.what);
  }
  return sums;
}

}  // namespace longca
