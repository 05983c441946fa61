#include "attention/selection/exact_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace longca::testing {
namespace {

double element(const ConstTensorView& x, std::int64_t token, std::int64_t head, std::int64_t c) {
  return x.dtype == DType::float32 ? x.row<float>(token, head)[c]
                                   : static_cast<float>(x.row<BFloat16>(token, head)[c]);
}

/// Mean over the tokens of a block and `group` heads from `head` on.
std::vector<double> mean_of(const ConstTensorView& x, Range tokens, std::int64_t head,
                            std::int64_t group) {
  std::vector<double> mean(static_cast<std::size_t>(x.dim), 0);
  for (std::int64_t c = 0; c < x.dim; ++c) {
    double sum = 0;
    for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
      for (std::int64_t g = 0; g < group; ++g) sum += element(x, token, head + g, c);
    }
    mean[static_cast<std::size_t>(c)] = sum / static_cast<double>(tokens.size() * group);
  }
  return mean;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t c = 0; c < a.size(); ++c) sum += a[c] * b[c];
  return sum;
}

Range block_at(const std::vector<std::int64_t>& bounds, std::int64_t i) {
  return {bounds[static_cast<std::size_t>(i)], bounds[static_cast<std::size_t>(i) + 1]};
}

}  // namespace

std::string fault_of_selection(const Problem& problem, const ConstTensorView& q,
                               const ConstTensorView& k, const BlockChoice& choice,
                               const BlockLists& lists, double tolerance) {
  if (lists.q_bounds != choice.q_bounds || lists.k_bounds != choice.k_bounds ||
      lists.heads != choice.heads) {
    return "the lists are of other blocks than the choice";
  }
  const std::int64_t group = problem.heads_q / choice.heads;
  for (int head = 0; head < choice.heads; ++head) {
    std::vector<std::vector<double>> keys;
    double largest_key = 0;
    for (std::int64_t j = 0; j < choice.k_blocks(); ++j) {
      keys.push_back(mean_of(k, block_at(choice.k_bounds, j),
                             std::int64_t{head} * problem.heads_k / choice.heads, 1));
      largest_key = std::max(largest_key, std::sqrt(dot(keys.back(), keys.back())));
    }
    for (std::int64_t i = 0; i < choice.q_blocks(); ++i) {
      const Range queries = block_at(choice.q_bounds, i);
      const std::vector<double> query = mean_of(q, queries, head * group, group);
      std::int64_t visible = choice.k_blocks();
      if (choice.causal) {
        visible = std::count_if(choice.k_bounds.begin(), choice.k_bounds.end() - 1,
                                [&](std::int64_t begin) { return begin < queries.end; });
      }
      const auto kept = lists.kept(head, i);
      const std::string row = fmt::format("head {}, query block {}", head, i);
      if (std::ssize(kept) != kept_blocks(choice.density, visible)) {
        return fmt::format("{} keeps {} of {} blocks", row, kept.size(), visible);
      }
      double lowest_in = std::numeric_limits<double>::infinity();
      double highest_out = -lowest_in;
      std::size_t next = 0;
      for (std::int64_t j = 0; j < visible; ++j) {
        const double score = problem.scale() * dot(query, keys[static_cast<std::size_t>(j)]);
        if (next < kept.size() && kept[next] == j) {
          lowest_in = std::min(lowest_in, score);
          ++next;
        } else {
          highest_out = std::max(highest_out, score);
        }
      }
      if (next != kept.size()) return row + " keeps what is not ascending and visible";
      const double margin =
          tolerance * problem.scale() * std::sqrt(dot(query, query)) * largest_key;
      if (!(highest_out - lowest_in <= margin)) {
        return fmt::format("{} keeps a score of {} and not {}: the tie's limit is {}", row,
                           lowest_in, highest_out, margin);
      }
    }
  }
  return "";
}

}  // namespace longca::testing
