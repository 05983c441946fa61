#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>

#include "core/error.h"
#include "core/rounding.h"
#include "core/thread_pool.h"
#include "mask/mask_data.h"

namespace longca {
namespace {

constexpr std::int64_t kMaxDenseCells = std::int64_t{1} << 28;

/// Of two ascending, disjoint lists.
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

/// Tokens of the kept key blocks within `keys`.
std::int64_t kept_tokens(const BlockLists& blocks, std::span<const std::int32_t> kept, Range keys) {
  const std::vector<std::int64_t>& bounds = blocks.k_bounds;
  const bool all_keys = keys == Range{0, bounds.back()};
  std::int64_t tokens = 0;
  for (const std::int32_t block : kept) {
    const Range range = {bounds[static_cast<std::size_t>(block)],
                         bounds[static_cast<std::size_t>(block) + 1]};
    tokens += all_keys ? range.size() : std::max<std::int64_t>(intersect(range, keys).size(), 0);
  }
  return tokens;
}

/// Allowed cells of the slices per key block of one query block: the same for all heads, computed
/// when a head first keeps the block.
class TileCells {
 public:
  using AreaOf = std::function<std::int64_t(Range rows, Range keys)>;

  TileCells(const AreaOf& area_of, Range rows, const std::vector<std::int64_t>& k_bounds)
      : area_of_(area_of),
        rows_(rows),
        k_bounds_(k_bounds),
        whole_(area_of(rows, {0, k_bounds.back()}) == rows.size() * k_bounds.back()),
        cells_(k_bounds.size() - 1, -1) {}

  std::int64_t operator[](std::int32_t block) {
    const auto j = static_cast<std::size_t>(block);
    if (cells_[j] < 0) {
      const Range keys = {k_bounds_[j], k_bounds_[j + 1]};
      cells_[j] = whole_ ? rows_.size() * keys.size() : area_of_(rows_, keys);
    }
    return cells_[j];
  }

 private:
  const AreaOf& area_of_;
  Range rows_;
  const std::vector<std::int64_t>& k_bounds_;
  bool whole_;
  std::vector<std::int64_t> cells_;
};

/// Whether one of the kept key blocks has a token in `keys`.
bool overlaps(const BlockLists& blocks, std::span<const std::int32_t> kept, Range keys) {
  const auto ends_before = [&](std::int32_t block, std::int64_t token) {
    return blocks.k_bounds[static_cast<std::size_t>(block) + 1] <= token;
  };
  const auto first = std::lower_bound(kept.begin(), kept.end(), keys.begin, ends_before);
  return first != kept.end() && blocks.k_bounds[static_cast<std::size_t>(*first)] < keys.end;
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

std::int64_t Mask::Data::block_area_in(int head, Range queries, Range keys) const {
  queries = intersect(queries, all_queries());
  keys = intersect(keys, all_keys());
  if (queries.empty() || keys.empty()) return 0;
  std::int64_t area = 0;
  for (std::int64_t i = block_of(blocks->q_bounds, queries.begin); i < blocks->q_blocks(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Range rows_here = intersect({blocks->q_bounds[at], blocks->q_bounds[at + 1]}, queries);
    if (rows_here.empty()) break;
    const auto kept = blocks->kept(head, i);
    if (slice_area_in(rows_here, keys) == rows_here.size() * keys.size()) {
      area += rows_here.size() * kept_tokens(*blocks, kept, keys);
      continue;
    }
    for (const std::int32_t block : kept) {
      const auto j = static_cast<std::size_t>(block);
      area +=
          slice_area_in(rows_here, intersect({blocks->k_bounds[j], blocks->k_bounds[j + 1]}, keys));
    }
  }
  return area;
}

std::vector<std::int64_t> Mask::Data::block_areas() const {
  constexpr std::int64_t kPiece = 16;
  const auto heads = static_cast<std::size_t>(blocks->heads);
  const std::int64_t q_blocks = blocks->q_blocks();
  std::vector<std::int64_t> totals(heads, 0);
  const TileCells::AreaOf area_of = [this](Range queries, Range keys) {
    return slice_area_in(queries, keys);
  };
  std::mutex adding;
  const auto add_piece = [&](std::int64_t piece, int) {
    std::vector<std::int64_t> sums(heads, 0);
    for (std::int64_t i = piece * kPiece; i < std::min((piece + 1) * kPiece, q_blocks); ++i) {
      const auto at = static_cast<std::size_t>(i);
      TileCells cells(area_of, {blocks->q_bounds[at], blocks->q_bounds[at + 1]}, blocks->k_bounds);
      for (std::size_t head = 0; head < heads; ++head) {
        for (const std::int32_t block : blocks->kept(static_cast<int>(head), i)) {
          sums[head] += cells[block];
        }
      }
    }
    const std::scoped_lock lock(adding);
    for (std::size_t head = 0; head < heads; ++head) totals[head] += sums[head];
  };
  ThreadPool::global().parallel_for(ceil_div(q_blocks, kPiece), add_piece);
  return totals;
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

std::int64_t rows_without_keys(const Mask& mask) {
  LONGCA_CHECK(mask.blocks() != nullptr, "a mask of {} × {} tokens without blocks", mask.q_tokens(),
               mask.k_tokens());
  const BlockLists& blocks = *mask.blocks();
  const std::vector<MaskSlice> slices(mask.slices().begin(), mask.slices().end());
  const Mask frame = Mask::from_slices(mask.q_tokens(), mask.k_tokens(), slices);
  std::atomic<std::int64_t> empty{0};
  ThreadPool::global().parallel_for(blocks.q_blocks(), [&](std::int64_t i, int) {
    const auto at = static_cast<std::size_t>(i);
    const Range rows = {blocks.q_bounds[at], blocks.q_bounds[at + 1]};
    const bool whole = frame.tile_class(0, rows, {0, mask.k_tokens()}) == TileClass::full;
    std::int64_t found = 0;
    if (whole) {
      for (int head = 0; head < blocks.heads; ++head) {
        if (blocks.kept(head, i).empty()) found += rows.size();
      }
    } else {
      for (std::int64_t row = rows.begin; row < rows.end; ++row) {
        const std::vector<Range> keys = frame.key_intervals(0, row);
        for (int head = 0; head < blocks.heads; ++head) {
          const auto kept = blocks.kept(head, i);
          found += std::ranges::none_of(keys, [&](Range r) { return overlaps(blocks, kept, r); });
        }
      }
    }
    empty += found;
  });
  return empty;
}

namespace {

struct AnyHead {
  Mask mask;
};

BlockLists kept_by_any(const BlockLists& blocks) {
  std::vector<std::uint32_t> bits = block_bits(blocks);
  const std::size_t of_head = bits.size() / static_cast<std::size_t>(blocks.heads);
  for (std::size_t i = of_head; i < bits.size(); ++i) bits[i % of_head] |= bits[i];
  bits.resize(of_head);
  return lists_of_bits(blocks.q_bounds, blocks.k_bounds, 1, bits);
}

}  // namespace

Mask any_head_of(const Mask& mask) {
  if (mask.heads() == 1) return mask;
  const auto make = [&] {
    return std::make_shared<const AnyHead>(AnyHead{Mask::from_blocks(
        mask.q_tokens(), mask.k_tokens(), {mask.slices().begin(), mask.slices().end()},
        kept_by_any(*mask.blocks()))});
  };
  return mask.derived<AnyHead>(make).mask;
}

}  // namespace longca
