#include "parallel/schemes/build/head_layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace longca {
namespace {

constexpr int kMaxChunks = 4;
constexpr int kMinQueryHeads = 4;

/// Part i of `parts` consecutive parts of `count`, as equal as can be.
Range part(int count, int parts, int i) {
  return {count * i / parts, count * (i + 1) / parts};
}

}  // namespace

HeadLayout::HeadLayout(int heads_q, int heads_k, int ways)
    : ways_(ways),
      replicas_(std::max(1, ways / heads_k)),
      q_per_member_(heads_q / ways),
      kv_per_member_(std::max(1, heads_k / ways)) {
  const bool shares_kv = kv_per_member_ == 1;
  const int max_chunks = shares_kv ? q_per_member_ / kMinQueryHeads : kv_per_member_;
  const int count = ways == 1 ? 1 : std::clamp(max_chunks, 1, kMaxChunks);
  const int group_size = q_per_member_ / kv_per_member_;
  for (int i = 0; i < count; ++i) {
    if (shares_kv && ways > 1) {
      chunks_.push_back({part(q_per_member_, count, i), 0});
      continue;
    }
    const Range kv = part(kv_per_member_, count, i);
    chunks_.push_back({{kv.begin * group_size, kv.end * group_size}, i});
    groups_.push_back(kv);
  }
  if (groups_.empty()) groups_.push_back({0, 1});
}

Range HeadLayout::q_heads(int member, const HeadChunk& chunk) const {
  const std::int64_t first = std::int64_t{member} * q_per_member_;
  return {first + chunk.q.begin, first + chunk.q.end};
}

Range HeadLayout::kv_heads(int member, int group) const {
  const std::int64_t first = std::int64_t{member / replicas_} * kv_per_member_;
  const Range heads = groups_[static_cast<std::size_t>(group)];
  return {first + heads.begin, first + heads.end};
}

Support check_heads(int heads_q, int heads_k, int ways) {
  if (ways > heads_q) {
    return Support::unsupported(fmt::format(
        "{} ranks share the heads: at most one per query head, here {}", ways, heads_q));
  }
  if (heads_q % ways != 0) {
    return Support::unsupported(fmt::format(
        "{} ranks share the heads: their number must divide the {} query heads", ways, heads_q));
  }
  if (heads_k % ways != 0 && ways % heads_k != 0) {
    return Support::unsupported(
        fmt::format("{} ranks share the heads: their number must divide the {} KV heads, or be a "
                    "multiple of them",
                    ways, heads_k));
  }
  return {};
}

}  // namespace longca
