#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/plan/plan.h"

namespace longca::testing {

enum class ContentKind : std::uint8_t {
  nothing,  ///< never written in this pass
  padding,  ///< a row behind the rank's tokens
  zero,     ///< cleared: a sum of nothing, of whatever token is added first
  value,
};

/// What one row of one head of a buffer stands for.
struct Value {
  ContentKind kind = ContentKind::nothing;
  TensorRole role = TensorRole::q;
  int token = 0;  ///< global numbers
  int head = 0;
  /// What has been summed or merged into it (o, lse, dq: keys; dk, dv: query heads × queries).
  int set = 0;
  int origin = -1;  ///< the message row that brought it, −1 if it was made here

  bool same_element(const Value& other) const {
    return role == other.role && token == other.token && head == other.head;
  }
};

/// "k of token 3, head 0", "padding", …
std::string describe(const Value& value);

/// Sets of small numbers, by number of the set; 0 is the empty set. Sets never change.
class SetStore {
 public:
  explicit SetStore(std::int64_t members) : words_((members + 63) / 64), sets_(words_, 0) {}

  int make(const std::vector<std::int64_t>& members);
  /// −1 if they share a member.
  int disjoint_union(int a, int b);
  bool equal(int a, int b) const;
  /// A member of `a` that `b` lacks, else −1.
  std::int64_t first_missing(int a, int b) const;

 private:
  const std::uint64_t* words(int set) const { return sets_.data() + set * words_; }

  std::int64_t words_;
  std::vector<std::uint64_t> sets_;
};

/// The rows of messages, and which of them something came of.
class Origins {
 public:
  /// A row of a message that held `parent` where it left.
  int add(int message, std::int64_t row, int parent);
  void mark_used(int origin);

  struct Entry {
    int message = 0;
    std::int64_t row = 0;
    int parent = -1;
    bool used = false;
  };
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

/// The buffers of one rank.
class Contents {
 public:
  explicit Contents(const RankPlan& plan);

  /// Row and head counted inside the region.
  Value& at(const Region& region, std::int64_t row, std::int64_t head) {
    const PlanBuffer& buffer = plan_->buffers[static_cast<std::size_t>(region.buffer)];
    return buffers_[static_cast<std::size_t>(region.buffer)][static_cast<std::size_t>(
        (region.tokens.begin + row) * buffer.heads + region.heads.begin + head)];
  }
  /// Forgets all buffers but the caller's and the kept ones, and which messages brought those.
  void begin_pass();

 private:
  const RankPlan* plan_;
  std::vector<std::vector<Value>> buffers_;
};

/// Calls visit(row, head), counted inside the region.
template <typename Visit>
void for_each_row(const Region& region, Visit&& visit) {
  for (std::int64_t row = 0; row < region.tokens.size(); ++row) {
    for (std::int64_t head = 0; head < region.heads.size(); ++head) visit(row, head);
  }
}

}  // namespace longca::testing
