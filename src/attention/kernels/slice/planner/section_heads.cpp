#include "attention/kernels/slice/planner/section_heads.h"

#include <algorithm>
#include <vector>

#include "cost/schedule.h"

namespace longca::slice {

std::int64_t finish_time(std::span<const CostedItem> items, const BackwardWork& work, int heads) {
  cost::ListSchedule<std::int64_t> schedule(work.ctas);
  for (int section = 0; section < work.heads_k; section += heads) {
    for (const CostedItem& item : items) {
      for (int head = 0; head < heads; ++head) schedule.add(item.cycles);
    }
  }
  return schedule.end();
}

SectionHeads choose_section_heads(const BackwardWork& work, std::int64_t slack_divisor,
                                  std::int64_t even_finish,
                                  const std::function<std::int64_t(int)>& finish) {
  const auto with_slack = [&](std::int64_t cycles) { return cycles + cycles / slack_divisor; };
  std::vector<std::int64_t> times;
  std::vector<std::int32_t> heads;
  // The first that ends near enough to `min`; beyond the last if none does.
  const auto choice = [&](std::int64_t min) {
    return std::ranges::find_if(times, [&](std::int64_t time) { return time <= with_slack(min); }) -
           times.begin();
  };
  for (int i = 1; i <= work.heads_k; ++i) {
    const bool power = (i & (i - 1)) == 0 || i == work.heads_k;
    if (work.heads_k % i != 0 || !power) continue;
    heads.push_back(i);
    times.push_back(finish(i));
    // The best number ends between even_finish and the best of these: if that changes nothing, more
    // need not be tried.
    if (choice(even_finish) == choice(*std::ranges::min_element(times))) break;
  }
  const auto chosen = static_cast<std::size_t>(choice(*std::ranges::min_element(times)));
  return {heads[chosen], times[chosen]};
}

}  // namespace longca::slice
