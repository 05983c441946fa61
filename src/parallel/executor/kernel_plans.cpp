#include "parallel/executor/kernel_plans.h"

#include <algorithm>

namespace longca {
namespace {

bool same_mask(const Mask& a, const Mask& b) {
  const BlockLists* x = a.blocks();
  const BlockLists* y = b.blocks();
  return a.q_tokens() == b.q_tokens() && a.k_tokens() == b.k_tokens() &&
         std::ranges::equal(a.slices(), b.slices()) &&
         (x == y || (x != nullptr && y != nullptr && *x == *y));
}

/// Whether one plan serves both, apart from the backward pass.
bool same_shape(const Problem& a, const Problem& b) {
  return a.tokens_q == b.tokens_q && a.tokens_k == b.tokens_k && a.heads_q == b.heads_q &&
         a.heads_k == b.heads_k && a.accumulate == b.accumulate;
}

/// Max bytes of kept rows per rank. `slice` keeps 0.5 KiB per token of 64 heads, and up to 1 MiB
/// per 128 keys of 8 KV heads. Larger calls gain nothing: row work is a small part of them.
constexpr std::int64_t kMaxKeptRows = std::int64_t{128} << 20;

}  // namespace

Support KernelPlans::want(const Problem& problem, const Mask& mask, std::size_t& index) {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return same_shape(entry.problem, problem) && same_mask(entry.mask, mask);
  });
  index = static_cast<std::size_t>(found - entries_.begin());
  const bool known = found != entries_.end() && (found->problem.backward || !problem.backward);
  if (known) return {};
  if (const Support said = kernel_.supports(problem, mask); !said.ok()) return said;
  if (found == entries_.end()) {
    entries_.push_back({.problem = problem, .mask = mask, .plan = nullptr});
  } else {
    found->problem.backward = true;
  }
  return {};
}

void KernelPlans::make() {
  for (Entry& entry : entries_) {
    if (!entry.plan) entry.plan = kernel_.plan(entry.problem, entry.mask);
  }
  keep_rows();
  share_scratch();
}

void KernelPlans::keep_rows() {
  std::int64_t free = kMaxKeptRows;
  for (const std::size_t index : rows_wanted_) {
    Entry& entry = entries_[index];
    const std::int64_t taken = entry.plan->keep_rows(free);
    entry.keeps_rows |= taken > 0;
    free -= taken;
  }
}

void KernelPlans::share_scratch() {
  std::vector<PlanScratch*> all;
  for (const Entry& entry : entries_) {
    if (PlanScratch* scratch = entry.plan->scratch()) all.push_back(scratch);
  }
  std::int64_t bytes = 0;
  for (const PlanScratch* scratch : all) bytes = std::max(bytes, scratch->bytes());
  if (bytes == 0) return;
  scratch_ = Buffer(Device::get(entries_.front().problem.device).memory(), bytes);
  for (PlanScratch* scratch : all) scratch->lend(scratch_.as<std::byte>());
}

std::int64_t KernelPlans::workspace_bytes() const {
  std::int64_t bytes = scratch_.bytes();
  for (const Entry& entry : entries_) bytes += entry.plan ? entry.plan->workspace_bytes() : 0;
  return bytes;
}

double KernelPlans::compile_ms() const {
  double ms = 0;
  for (const Entry& entry : entries_) ms += entry.plan ? entry.plan->compile_ms() : 0;
  return ms;
}

std::map<std::string, std::string> KernelPlans::notes() const {
  std::map<std::string, std::string> notes;
  for (const Entry& entry : entries_) {
    if (entry.plan) notes.merge(entry.plan->notes());
  }
  return notes;
}

}  // namespace longca
