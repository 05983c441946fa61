#include "parallel/plan/lane_order.h"

#include <algorithm>
#include <array>

namespace longca {

LaneOrder::LaneOrder(const std::vector<Op>& ops) {
  std::array<int, 2> waited = {-1, -1};  // per lane: the last op of the other that it waited for
  for (const Op& op : ops) {
    int& last = waited[static_cast<std::size_t>(op.lane)];
    for (const int before : op.after) {
      if (lanes_[static_cast<std::size_t>(before)] != op.lane) last = std::max(last, before);
    }
    lanes_.push_back(op.lane);
    waited_.push_back(last);
  }
}

bool LaneOrder::waits(int op, int earlier) const {
  const auto i = static_cast<std::size_t>(op);
  return lanes_[i] == lanes_[static_cast<std::size_t>(earlier)] ? earlier < op
                                                                : earlier <= waited_[i];
}

bool LaneOrder::unordered(int a, int b) const {
  return a != b && !waits(a, b) && !waits(b, a);
}

}  // namespace longca
