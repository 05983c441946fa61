#include "attention/kernels/slice/planner/work_order.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/kernels/slice/planner/work_cuts.h"
#include "attention/kernels/slice/planner/work_shares.h"

namespace longca::slice {
namespace {

/// Shares that begin with the same query (a document's, a chunk's) one after the other, so that
/// what they read stays in L2, the group with the costliest first.
void sort_shares(std::vector<WorkShare>& shares) {
  std::stable_sort(shares.begin(), shares.end(),
                   [](const WorkShare& a, const WorkShare& b) { return a.last < b.last; });
  struct Group {
    std::size_t begin, end;
    std::int64_t most;  ///< cost
  };
  std::vector<Group> groups;
  for (std::size_t begin = 0, end = 0; begin < shares.size(); begin = end) {
    std::int64_t most = 0;
    for (end = begin; end < shares.size() && shares[end].last == shares[begin].last; ++end) {
      most = std::max(most, shares[end].cost);
    }
    groups.push_back({begin, end, most});
  }
  std::reverse(groups.begin(), groups.end());
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.most > b.most; });
  std::vector<WorkShare> sorted;
  sorted.reserve(shares.size());
  for (const Group& group : groups) {
    sorted.insert(sorted.end(), shares.begin() + static_cast<std::ptrdiff_t>(group.begin),
                  shares.begin() + static_cast<std::ptrdiff_t>(group.end));
  }
  shares.swap(sorted);
}

constexpr std::int64_t kManyItems = 64;  // per CTA

/// The fewest KV heads at a time (their rows stay in L2) that leave CTAs idle at the end for
/// no more than a fiftieth of the time longer than others do.
std::int32_t section_heads(std::span<const WorkShare> shares, const BackwardWork& by) {
  std::vector<std::int64_t> times;
  std::vector<std::int32_t> heads;
  for (int i = 1; i <= by.heads_k; ++i) {
    const bool power = (i & (i - 1)) == 0 || i == by.heads_k;
    if (by.heads_k % i != 0 || !power) continue;
    heads.push_back(i);
    times.push_back(finish_time(shares, by, i));
  }
  const std::int64_t least = *std::min_element(times.begin(), times.end());
  std::size_t best = 0;
  while (times[best] > least + least / 50) ++best;
  return heads[best];
}

}  // namespace

bool has_many_items(const BackwardWork& work, std::int64_t items) {
  return items * work.heads_k > kManyItems * work.ctas;
}

void order_work(const BackwardWork& work, TransposedLists& lists) {
  std::vector<std::vector<WorkShare>> orders = share_tiles(work, lists);
  for (std::vector<WorkShare>& shares : orders) sort_shares(shares);
  const bool many = has_many_items(work, std::ssize(orders.front()));
  lists.section_heads = many ? 1 : section_heads(orders.front(), work);
  if (!lists.of_blocks) {
    if (!many && !work.ordered) cut_last_shares(work, lists, orders.front());
    place_shared_keys(orders.front(), lists);
  }
  lists.items_per_order = static_cast<std::int64_t>(orders.front().size());
  lists.order.reserve(orders.size() * orders.front().size());
  for (const std::vector<WorkShare>& shares : orders) {
    for (const WorkShare& share : shares) lists.order.push_back(share.item);
  }
}

}  // namespace longca::slice
