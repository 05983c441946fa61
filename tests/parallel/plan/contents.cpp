#include "parallel/plan/contents.h"

#include <fmt/format.h>

#include <algorithm>

namespace longca::testing {

std::string describe(const Value& value) {
  switch (value.kind) {
    case ContentKind::nothing:
      return "nothing";
    case ContentKind::padding:
      return "padding";
    case ContentKind::zero:
      return "zero";
    case ContentKind::value:
      break;
  }
  return fmt::format("{} of token {}, head {}", to_string(value.role), value.token, value.head);
}

int SetStore::make(const std::vector<std::int64_t>& members) {
  if (members.empty()) return 0;
  const auto set = static_cast<int>(std::ssize(sets_) / words_);
  sets_.resize(sets_.size() + static_cast<std::size_t>(words_), 0);
  for (const std::int64_t m : members) {
    sets_[static_cast<std::size_t>(set * words_ + m / 64)] |= std::uint64_t{1} << (m % 64);
  }
  return set;
}

int SetStore::disjoint_union(int a, int b) {
  if (a == 0 || b == 0) return a + b;
  for (std::int64_t i = 0; i < words_; ++i) {
    if ((words(a)[i] & words(b)[i]) != 0) return -1;
  }
  const auto set = static_cast<int>(std::ssize(sets_) / words_);
  sets_.resize(sets_.size() + static_cast<std::size_t>(words_));
  for (std::int64_t i = 0; i < words_; ++i) {
    sets_[static_cast<std::size_t>(set * words_ + i)] = words(a)[i] | words(b)[i];
  }
  return set;
}

bool SetStore::equal(int a, int b) const {
  return std::equal(words(a), words(a) + words_, words(b));
}

std::int64_t SetStore::first_missing(int a, int b) const {
  for (std::int64_t m = 0; m < words_ * 64; ++m) {
    const std::uint64_t bit = std::uint64_t{1} << (m % 64);
    if ((words(a)[m / 64] & bit) != 0 && (words(b)[m / 64] & bit) == 0) return m;
  }
  return -1;
}

int Origins::add(int message, std::int64_t row, int parent) {
  entries_.push_back({message, row, parent, false});
  return static_cast<int>(entries_.size()) - 1;
}

void Origins::mark_used(int origin) {
  for (; origin >= 0; origin = entries_[static_cast<std::size_t>(origin)].parent) {
    Entry& entry = entries_[static_cast<std::size_t>(origin)];
    if (entry.used) return;
    entry.used = true;
  }
}

Contents::Contents(const RankPlan& plan) : plan_(&plan) {
  for (const PlanBuffer& buffer : plan.buffers) {
    buffers_.emplace_back(static_cast<std::size_t>(buffer.tokens * buffer.heads));
  }
}

void Contents::begin_pass() {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const PlanBuffer& buffer = plan_->buffers[i];
    const bool stays = buffer.external || buffer.kept;
    for (Value& value : buffers_[i]) {
      if (!stays) value = {};
      value.origin = -1;
    }
  }
}

}  // namespace longca::testing
