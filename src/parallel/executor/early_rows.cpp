#include "parallel/executor/early_rows.h"

#include <algorithm>
#include <span>
#include <variant>

#include "parallel/executor/op_regions.h"

namespace longca {
namespace {

bool moves_something(const Op& op) {
  const auto* exchange = std::get_if<Exchange>(&op.what);
  return exchange == nullptr || !exchange->sends.empty() || !exchange->receives.empty();
}

bool waits_for_exchange(const std::vector<Op>& ops, const Op& op) {
  return op.lane == Lane::compute && std::ranges::any_of(op.after, [&](int named) {
           const Op& before = ops[static_cast<std::size_t>(named)];
           return before.lane == Lane::communication && moves_something(before);
         });
}

}  // namespace

EarlyRows find_early_rows(const std::vector<Op>& ops) {
  EarlyRows early;
  const auto waiting =
      std::ranges::find_if(ops, [&](const Op& op) { return waits_for_exchange(ops, op); });
  early.before = static_cast<std::size_t>(waiting - ops.begin());
  std::vector<OpRegions> pending;  // of ops that may not have ended before the wait
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto* attend = std::get_if<AttendBackward>(&ops[i].what);
    if (i >= early.before && attend != nullptr && ops[i].lane == Lane::compute) {
      const OpRegions rows = {{attend->dout, attend->o, attend->lse}, {}};
      const bool ready =
          std::ranges::none_of(pending, [&](const OpRegions& op) { return conflict(rows, op); });
      if (ready) early.ops.push_back(static_cast<int>(i));
    }
    if (i >= early.before || ops[i].lane == Lane::communication) {
      pending.push_back(regions_of(ops[i]));
    }
  }
  return early;
}

}  // namespace longca
