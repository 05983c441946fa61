#include <algorithm>

#include "core/error.h"
#include "mask/mask_data.h"

namespace longca {
namespace {

constexpr std::int64_t kMaxDenseCells = std::int64_t{1} << 28;

/// Both ascending and disjoint.
std::vector<Range> intersections(const std::vector<Range>& a, const std::vector<Range>& b) {
  std::vector<Range> common;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Range range = intersect(a[i], b[j]);
    if (!range.empty()) common.push_back(range);
    a[i].end < b[j].end ? ++i : ++j;
  }
  return common;
}

std::vector<Range> kept_keys(const BlockLists& blocks, int head, std::int64_t q) {
  std::vector<Range> keys;
  for (const std::int32_t block : blocks.kept(head, block_of(blocks.q_bounds, q))) {
    const auto i = static_cast<std::size_t>(block);
    keys.push_back({blocks.k_bounds[i], blocks.k_bounds[i + 1]});
  }
  join_ranges(keys);
  return keys;
}

std::vector<Range> keeping_queries(const BlockLists& blocks, int head, std::int64_t k) {
  const auto k_block = static_cast<std::int32_t>(block_of(blocks.k_bounds, k));
  std::vector<Range> queries;
  for (std::int64_t i = 0; i < blocks.q_blocks(); ++i) {
    const auto kept = blocks.kept(head, i);
    if (!std::binary_search(kept.begin(), kept.end(), k_block)) continue;
    const auto at = static_cast<std::size_t>(i);
    queries.push_back({blocks.q_bounds[at], blocks.q_bounds[at + 1]});
  }
  join_ranges(queries);
  return queries;
}

}  // namespace

const RangeIndex& Mask::Data::rows() const {
  std::call_once(rows_once_, [this] {
    std::vector<Range> ranges;
    ranges.reserve(bands.size());
    for (const Band& band : bands) ranges.push_back(band.rows());
    rows_ = RangeIndex(ranges);
  });
  return rows_;
}

const RangeIndex& Mask::Data::columns() const {
  std::call_once(columns_once_, [this] {
    std::vector<Range> ranges;
    ranges.reserve(bands.size());
    for (const Band& band : bands) ranges.push_back(band.transposed().rows());
    columns_ = RangeIndex(ranges);
  });
  return columns_;
}

std::int64_t Mask::Data::slice_area_in(Range queries, Range keys) const {
  std::int64_t area = 0;
  rows().for_each_overlapping(
      queries, [&](std::uint32_t i) { area += bands[i].clipped(queries, keys).area(); });
  return area;
}

bool Mask::allows(int head, std::int64_t q, std::int64_t k) const {
  return area_in(head, {q, q + 1}, {k, k + 1}) != 0;
}

std::vector<Range> Mask::key_intervals(int head, std::int64_t q) const {
  LONGCA_CHECK(head >= 0 && head < heads(), "head {} of a mask of {}", head, heads());
  LONGCA_CHECK(q >= 0 && q < q_tokens(), "query {} of a mask of {}", q, q_tokens());
  std::vector<Range> keys;
  data_->rows().for_each_overlapping(
      {q, q + 1}, [&](std::uint32_t i) { keys.push_back(data_->bands[i].keys_of(q)); });
  join_ranges(keys);
  return data_->blocks ? intersections(keys, kept_keys(*data_->blocks, head, q)) : keys;
}

std::vector<Range> Mask::query_intervals(int head, std::int64_t k) const {
  LONGCA_CHECK(head >= 0 && head < heads(), "head {} of a mask of {}", head, heads());
  LONGCA_CHECK(k >= 0 && k < k_tokens(), "key {} of a mask of {}", k, k_tokens());
  std::vector<Range> queries;
  data_->columns().for_each_overlapping({k, k + 1}, [&](std::uint32_t i) {
    queries.push_back(data_->bands[i].transposed().keys_of(k));
  });
  join_ranges(queries);
  return data_->blocks ? intersections(queries, keeping_queries(*data_->blocks, head, k)) : queries;
}

std::int64_t Mask::area_in(int head, Range rows, Range keys) const {
  LONGCA_CHECK(head >= 0 && head < heads(), "head {} of a mask of {}", head, heads());
  return data_->blocks ? data_->block_area_in(head, rows, keys) : data_->slice_area_in(rows, keys);
}

TileClass Mask::tile_class(int head, Range rows, Range keys) const {
  const std::int64_t area = area_in(head, rows, keys);
  if (area == 0) return TileClass::empty;
  const Range queries = intersect(rows, data_->all_queries());
  const std::int64_t cells = queries.size() * intersect(keys, data_->all_keys()).size();
  return area == cells ? TileClass::full : TileClass::partial;
}

std::vector<std::uint8_t> Mask::dense(int head) const {
  const std::int64_t cells = q_tokens() * k_tokens();
  if (cells > kMaxDenseCells) {
    throw_input_error("a dense mask of {} queries × {} keys has {} cells: the limit is {}",
                      q_tokens(), k_tokens(), cells, kMaxDenseCells);
  }
  std::vector<std::uint8_t> matrix(static_cast<std::size_t>(cells), 0);
  for (std::int64_t q = 0; q < q_tokens(); ++q) {
    const auto row = matrix.begin() + q * k_tokens();
    for (const Range keys : key_intervals(head, q)) {
      std::fill(row + keys.begin, row + keys.end, std::uint8_t{1});
    }
  }
  return matrix;
}

}  // namespace longca
