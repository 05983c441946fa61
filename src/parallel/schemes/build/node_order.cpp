#include "parallel/schemes/build/node_order.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

#include "parallel/schemes/build/relays.h"
#include "parallel/schemes/build/seen_keys.h"

namespace longca {
namespace {

/// Beyond, only one order is tried beside the given one: filling nodes takes quadratic time.
constexpr std::size_t kManyParts = 128;

/// Keys that a part owns and that it sees.
struct Part {
  std::vector<Range> own;
  std::vector<Range> seen;
  Range longest{};  ///< of `seen`; the first of equal ones
};

/// A rule to fill nodes, one part after the other.
struct FillRule {
  double common;    ///< what a key that the node sees already is worth; at least 1
  bool most_first;  ///< a node begins with the part that sees most keys, not the next in order
};
constexpr FillRule kRules[] = {{1.5, false}, {1.5, true}, {2, true}, {3, true}};

/// By where the longest run of keys that a part sees begins, longer ones first.
std::vector<int> sorted(const std::vector<Part>& parts) {
  std::vector<int> order(parts.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) {
    const Range first = parts[static_cast<std::size_t>(a)].longest;
    const Range second = parts[static_cast<std::size_t>(b)].longest;
    return first.begin != second.begin ? first.begin < second.begin : first.end > second.end;
  });
  return order;
}

std::int64_t common_keys(const std::vector<Range>& a, const std::vector<Range>& b) {
  return total_size(common_ranges(a, b));
}

/// Fills node after node with the part that adds fewest keys to those that cross.
std::vector<int> filled(const std::vector<Part>& parts, std::vector<int> rest, std::size_t node,
                        FillRule rule) {
  std::vector<int> order;
  std::vector<Range> seen;  // by the node's parts
  const auto cost = [&](int i) {
    const Part& part = parts[static_cast<std::size_t>(i)];
    const auto keys = static_cast<double>(total_size(part.seen));
    if (seen.empty()) return rule.most_first ? -keys : 0.0;
    return keys - rule.common * static_cast<double>(common_keys(seen, part.seen)) -
           static_cast<double>(common_keys(seen, part.own));
  };
  while (!rest.empty()) {
    if (order.size() % node == 0) seen.clear();
    const auto best = std::ranges::min_element(rest, {}, cost);
    const std::vector<Range>& more = parts[static_cast<std::size_t>(*best)].seen;
    seen.insert(seen.end(), more.begin(), more.end());
    join_ranges(seen);
    order.push_back(*best);
    rest.erase(best);
  }
  return order;
}

/// The largest load of a part, in keys over a NIC one way.
std::int64_t max_load(const std::vector<Part>& parts, const std::vector<int>& order,
                      std::size_t node) {
  std::vector<std::vector<Range>> foreign;  // keys that each node sees in others
  std::vector<std::int64_t> in;             // by place
  for (std::size_t begin = 0; begin < order.size(); begin += node) {
    std::vector<std::vector<Range>> seen;
    std::vector<Range> all, own;
    for (std::size_t i = begin; i < std::min(begin + node, order.size()); ++i) {
      const Part& part = parts[static_cast<std::size_t>(order[i])];
      seen.push_back(part.seen);
      all.insert(all.end(), part.seen.begin(), part.seen.end());
      own.insert(own.end(), part.own.begin(), part.own.end());
    }
    join_ranges(all);
    join_ranges(own);
    foreign.push_back(common_ranges(all, outside(own, all.empty() ? 0 : all.back().end)));
    for (const KeyShare& brought : share_keys(seen, foreign.back())) {
      in.push_back(total_size(brought.alone) + total_size(brought.shared));
    }
  }
  std::int64_t max = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::int64_t out = 0;
    for (const std::vector<Range>& keys : foreign) {
      out += common_keys(keys, parts[static_cast<std::size_t>(order[i])].own);
    }
    max = std::max({max, out + 2 * in[i], in[i] + 2 * out});
  }
  return max;
}

}  // namespace

std::vector<int> node_order(const Mask& mask, const std::vector<std::vector<Range>>& parts,
                            int node) {
  const SeenKeys seen(mask);
  std::vector<Part> all;
  for (const std::vector<Range>& own : parts) {
    all.push_back({own, seen.by(own)});
    const std::vector<Range>& keys = all.back().seen;
    if (!keys.empty()) all.back().longest = *std::ranges::max_element(keys, {}, &Range::size);
  }
  std::vector<int> best(parts.size());
  std::iota(best.begin(), best.end(), 0);
  const auto of_node = static_cast<std::size_t>(node);
  std::int64_t load = max_load(all, best, of_node);
  const auto offer = [&](std::vector<int> order) {
    const std::int64_t of_order = max_load(all, order, of_node);
    if (of_order >= load) return;
    load = of_order;
    best = std::move(order);
  };
  const std::vector<int> by_keys = sorted(all);
  offer(by_keys);
  if (parts.size() > kManyParts) return best;
  for (const FillRule& rule : kRules) {
    offer(filled(all, by_keys, of_node, rule));
  }
  return best;
}

}  // namespace longca
