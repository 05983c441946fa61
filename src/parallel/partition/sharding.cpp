#include "parallel/partition/sharding.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/error.h"
#include "core/nearest.h"
#include "core/rounding.h"
#include "mask/mask_slice.h"
#include "mask/range.h"
#include "parallel/partition/balanced_partition.h"

namespace longca {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"contiguous", "zigzag", "document_zigzag",
                                                    "balanced", "document_balanced"};

/// Part i of `parts` consecutive ones of a run of `total`, sizes differing by at most one, the
/// larger ones first.
Range part_of(std::int64_t total, std::int64_t parts, std::int64_t i) {
  const std::int64_t size = total / parts;
  const std::int64_t larger = total % parts;
  const auto begin = [&](std::int64_t at) { return at * size + std::min(at, larger); };
  return {begin(i), begin(i + 1)};
}

std::int64_t padded_chunk(std::int64_t length, int cp_ranks) {
  const std::int64_t chunks = 2 * std::int64_t{cp_ranks};
  return ceil_div(length, chunks);
}

/// Ascending, not touching. `chunks`: padded_chunk of each document.
std::vector<Range> document_chunks(std::span<const std::int64_t> lengths,
                                   std::span<const std::int64_t> chunks, int cp_ranks,
                                   int cp_rank) {
  std::vector<Range> ranges;
  ranges.reserve(2 * lengths.size());
  std::int64_t first = 0;
  for (std::size_t document = 0; document < lengths.size(); ++document) {
    const std::int64_t length = lengths[document];
    const std::int64_t size = chunks[document];
    for (const std::int64_t i : {cp_rank, 2 * cp_ranks - 1 - cp_rank}) {
      if (i * size >= length) break;  // this chunk and later ones are padding
      const Range chunk = {first + i * size, first + std::min((i + 1) * size, length)};
      if (!ranges.empty() && ranges.back().end == chunk.begin) {
        ranges.back().end = chunk.end;
      } else {
        ranges.push_back(chunk);
      }
    }
    first += length;
  }
  return ranges;
}

}  // namespace

std::string_view to_string(ShardKind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

ShardKind parse_shard_kind(std::string_view text) {
  const auto found = std::find(kNames.begin(), kNames.end(), text);
  if (found == kNames.end()) {
    const auto names = shard_kind_names();
    throw_input_error("unknown shard '{}'{}; there are {}", text, suggestion(text, names),
                      fmt::join(names, ", "));
  }
  return static_cast<ShardKind>(found - kNames.begin());
}

std::vector<std::string> shard_kind_names() {
  return {kNames.begin(), kNames.end()};
}

Sharding::Sharding(ShardKind kind, const Mask& mask, std::span<const std::int64_t> lengths,
                   int cp_ranks, std::int64_t chunk, PartitionAim aim,
                   const cost::Platform& platform)
    : kind_(kind), cp_ranks_(cp_ranks), total_(mask.q_tokens()) {
  if (cp_ranks < 1) throw_input_error("{} CP ranks to shard over: at least 1", cp_ranks);
  if (chunk < 0) throw_input_error("chunks of {} tokens: at least 1, or 0 to choose", chunk);
  if (kind == ShardKind::document_zigzag) {
    lengths_.assign(lengths.begin(), lengths.end());
    if (lengths_.empty()) lengths_.push_back(total_);
    const auto sum = std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0});
    LONGCA_CHECK(sum == total_, "documents of {} tokens in a mask of {}", sum, total_);
    chunks_.reserve(lengths_.size());
    for (const std::int64_t length : lengths_) chunks_.push_back(padded_chunk(length, cp_ranks));
  }
  if (kind == ShardKind::document_balanced) {
    assigned_ = partition_documents(mask, cp_ranks, aim, platform);
  }
  if (kind == ShardKind::balanced || (kind == ShardKind::document_balanced && assigned_.empty())) {
    BalancedPartition partition = partition_balanced(mask, cp_ranks, chunk);
    chunk_ = partition.chunk;
    assigned_ = std::move(partition.ranges);
  }
}

std::vector<Range> Sharding::ranges(int cp_rank) const {
  LONGCA_CHECK(cp_rank >= 0 && cp_rank < cp_ranks_, "CP rank {} of {}", cp_rank, cp_ranks_);
  std::vector<Range> ranges;
  switch (kind_) {
    case ShardKind::contiguous:
      ranges = {part_of(total_, cp_ranks_, cp_rank)};
      break;
    case ShardKind::zigzag: {
      const std::int64_t chunks = 2 * std::int64_t{cp_ranks_};
      ranges = {part_of(total_, chunks, cp_rank), part_of(total_, chunks, chunks - 1 - cp_rank)};
      break;
    }
    case ShardKind::document_zigzag:
      return document_chunks(lengths_, chunks_, cp_ranks_, cp_rank);
    case ShardKind::balanced:
    case ShardKind::document_balanced:
      return assigned_[static_cast<std::size_t>(cp_rank)];
  }
  join_ranges(ranges);
  return ranges;
}

std::int64_t Sharding::tokens(int cp_rank) const {
  return total_size(ranges(cp_rank));
}

std::int64_t Sharding::rows(int cp_rank) const {
  if (kind_ != ShardKind::document_zigzag) return tokens(cp_rank);
  std::int64_t rows = 0;
  for (const std::int64_t chunk : chunks_) rows += 2 * chunk;
  return rows;
}

std::vector<Range> split_ranges(std::span<const Range> ranges, int parts, int member) {
  const Range wanted = part_of(total_size(ranges), parts, member);
  std::vector<Range> mine;
  std::int64_t before = 0;
  for (const Range range : ranges) {
    const std::int64_t shift = range.begin - before;
    const Range own = intersect(range, {wanted.begin + shift, wanted.end + shift});
    if (!own.empty()) mine.push_back(own);
    before += range.size();
  }
  return mine;
}

double area_imbalance(const Mask& mask, const Sharding& sharding) {
  double largest = 0;
  double sum = 0;
  for (int cp_rank = 0; cp_rank < sharding.cp_ranks(); ++cp_rank) {
    double area = 0;
    for (const Range rows : sharding.ranges(cp_rank)) {
      for (int head = 0; head < mask.heads(); ++head) {
        area += static_cast<double>(mask.area_in(head, rows, {0, mask.k_tokens()}));
      }
    }
    largest = std::max(largest, area);
    sum += area;
  }
  return sum > 0 ? largest * sharding.cp_ranks() / sum : 1.0;
}

}  // namespace longca
