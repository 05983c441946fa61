#include "attention/kernels/slice/planner/work_order.h"

#include <span>
#include <vector>

#include "attention/kernels/slice/planner/free_work.h"
#include "attention/kernels/slice/planner/ordered_work.h"
#include "attention/kernels/slice/planner/section_heads.h"

namespace longca::slice {
namespace {

/// Items per CTA up to which the tail matters, an item's time at most; with more, nothing is
/// simulated.
constexpr std::int64_t kManyItems = 64;

/// Fills in end_cycles and chunk_items. With many items, CTAs count as ending together.
void estimate_end(const BackwardWork& work, std::span<const std::vector<CostedItem>> orders,
                  bool many, TransposedLists& lists) {
  std::int64_t cycles = 0;
  std::int64_t in_chunks = 0;
  for (const std::vector<CostedItem>& items : orders) {
    for (const CostedItem& item : items) {
      const bool is_cut = item.cycles != item_cycles(work.platform.slice.backward, item.visits);
      cycles += item.cycles;
      in_chunks += item.item.split >= 0 && !is_cut ? 1 : 0;
    }
  }
  const double per_cta =
      static_cast<double>(work.heads_k) / static_cast<double>(orders.size()) / work.ctas;
  lists.chunk_items = static_cast<double>(in_chunks) * per_cta;
  lists.end_cycles =
      many ? static_cast<double>(cycles) * per_cta
           : static_cast<double>(finish_time(orders.front(), work, lists.section_heads));
}

}  // namespace

bool has_many_items(const BackwardWork& work, std::int64_t items) {
  return items * work.heads_k > kManyItems * work.ctas;
}

void order_work(const BackwardWork& work, TransposedLists& lists) {
  // In a fixed order items wait for each other; those of block lists come to rows in no pattern, so
  // that nothing can be planned for it.
  const bool waits = work.ordered && !lists.of_blocks;
  std::vector<std::vector<CostedItem>> orders = make_items(work, lists);
  for (std::vector<CostedItem>& items : orders) group_items(items);
  std::vector<CostedItem>& first = orders.front();
  const bool many = has_many_items(work, std::ssize(first));
  if (waits) {
    choose_ordered_work(work, kManyItems * work.ctas, lists, first);
  } else if (lists.of_blocks) {
    if (!many) choose_sections(work, first, lists);
  } else {
    if (!many) choose_free_work(work, lists, first);
    index_split_keys(first, lists);
  }
  estimate_end(work, orders, many, lists);
  lists.items_per_order = static_cast<std::int64_t>(orders.front().size());
  lists.order.reserve(orders.size() * orders.front().size());
  for (const std::vector<CostedItem>& items : orders) {
    for (const CostedItem& item : items) lists.order.push_back(item.item);
  }
}

}  // namespace longca::slice
