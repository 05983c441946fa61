#include "parallel/plan/sharding.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/error.h"
#include "core/nearest.h"
#include "mask/band.h"
#include "mask/total_size.h"
#include "parallel/plan/balanced_deal.h"
#include "parallel/plan/document_deal.h"

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

std::int64_t padded_chunk(std::int64_t length, int positions) {
  const std::int64_t chunks = 2 * std::int64_t{positions};
  return (length + chunks - 1) / chunks;
}

/// Ascending, not touching. `chunks`: padded_chunk of each document.
std::vector<Range> document_chunks(std::span<const std::int64_t> lengths,
                                   std::span<const std::int64_t> chunks, int positions,
                                   int position) {
  std::vector<Range> ranges;
  ranges.reserve(2 * lengths.size());
  std::int64_t first = 0;
  for (std::size_t document = 0; document < lengths.size(); ++document) {
    const std::int64_t length = lengths[document];
    const std::int64_t size = chunks[document];
    for (const std::int64_t i : {position, 2 * positions - 1 - position}) {
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
    throw_input_error("unknown shard '{}'{}", text, suggestion(text, names));
  }
  return static_cast<ShardKind>(found - kNames.begin());
}

std::vector<std::string> shard_kind_names() {
  return {kNames.begin(), kNames.end()};
}

Sharding::Sharding(ShardKind kind, const Mask& mask, std::span<const std::int64_t> lengths,
                   int positions, std::int64_t chunk, DealAim aim)
    : kind_(kind), positions_(positions), total_(mask.q_tokens()) {
  if (positions < 1) throw_input_error("{} positions to shard over: at least 1", positions);
  if (chunk < 0) throw_input_error("chunks of {} tokens: at least 1, or 0 to choose", chunk);
  if (kind == ShardKind::document_zigzag) {
    lengths_.assign(lengths.begin(), lengths.end());
    if (lengths_.empty()) lengths_.push_back(total_);
    const auto sum = std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0});
    LONGCA_CHECK(sum == total_, "documents of {} tokens in a mask of {}", sum, total_);
    chunks_.reserve(lengths_.size());
    for (const std::int64_t length : lengths_) chunks_.push_back(padded_chunk(length, positions));
  }
  if (kind == ShardKind::document_balanced) dealt_ = deal_documents(mask, positions, aim);
  if (kind == ShardKind::balanced || (kind == ShardKind::document_balanced && dealt_.empty())) {
    BalancedDeal deal = deal_balanced(mask, positions, chunk);
    chunk_ = deal.chunk;
    dealt_ = std::move(deal.ranges);
  }
}

std::vector<Range> Sharding::ranges(int position) const {
  LONGCA_CHECK(position >= 0 && position < positions_, "position {} of {}", position, positions_);
  std::vector<Range> ranges;
  switch (kind_) {
    case ShardKind::contiguous:
      ranges = {part_of(total_, positions_, position)};
      break;
    case ShardKind::zigzag: {
      const std::int64_t chunks = 2 * std::int64_t{positions_};
      ranges = {part_of(total_, chunks, position), part_of(total_, chunks, chunks - 1 - position)};
      break;
    }
    case ShardKind::document_zigzag:
      return document_chunks(lengths_, chunks_, positions_, position);
    case ShardKind::balanced:
    case ShardKind::document_balanced:
      return dealt_[static_cast<std::size_t>(position)];
  }
  join_ranges(ranges);
  return ranges;
}

std::int64_t Sharding::tokens(int position) const {
  return total_size(ranges(position));
}

std::int64_t Sharding::rows(int position) const {
  if (kind_ != ShardKind::document_zigzag) return tokens(position);
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
  for (int position = 0; position < sharding.positions(); ++position) {
    double area = 0;
    for (const Range rows : sharding.ranges(position)) {
      for (int head = 0; head < mask.heads(); ++head) {
        area += static_cast<double>(mask.area_in(head, rows, {0, mask.k_tokens()}));
      }
    }
    largest = std::max(largest, area);
    sum += area;
  }
  return sum > 0 ? largest * sharding.positions() / sum : 1.0;
}

}  // namespace longca
