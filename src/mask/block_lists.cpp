#include <algorithm>
#include <functional>
#include <mutex>

#include "core/error.h"
#include "core/thread_pool.h"
#include "mask/mask_data.h"

namespace longca {
namespace {

void check_bounds(const char* what, const std::vector<std::int64_t>& bounds, std::int64_t tokens) {
  if (bounds.empty() || bounds.front() != 0 || bounds.back() != tokens) {
    throw_input_error("{} block bounds go from {} to {}: they must go from 0 to {} tokens", what,
                      bounds.empty() ? 0 : bounds.front(), bounds.empty() ? 0 : bounds.back(),
                      tokens);
  }
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    if (bounds[i] >= bounds[i + 1]) {
      throw_input_error("{} block {} goes from {} to {}: bounds must ascend", what, i, bounds[i],
                        bounds[i + 1]);
    }
  }
}

void check_list(const BlockLists& blocks, int head, std::int64_t q_block) {
  std::int64_t previous = -1;
  for (const std::int32_t kept : blocks.kept(head, q_block)) {
    if (kept <= previous || kept >= blocks.k_blocks()) {
      throw_input_error(
          "head {}, query block {} keeps key block {} after {}: kept blocks must ascend and be "
          "below {}",
          head, q_block, kept, previous, blocks.k_blocks());
    }
    previous = kept;
  }
}

/// Tokens of the kept key blocks inside `keys`.
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

/// Rows of lists that one task works on.
constexpr std::int64_t kRowsPerTask = 256;

/// Calls body(begin, end) for pieces of [0, rows) that make up all of it, by several threads.
template <typename Body>
void for_each_piece(std::int64_t rows, const Body& body) {
  const std::int64_t pieces = (rows + kRowsPerTask - 1) / kRowsPerTask;
  if (pieces <= 1) return body(std::int64_t{0}, rows);
  ThreadPool::global().parallel_for(pieces, [&](std::int64_t i, int) {
    body(i * kRowsPerTask, std::min((i + 1) * kRowsPerTask, rows));
  });
}

}  // namespace

std::span<const std::int32_t> BlockLists::kept(int head, std::int64_t q_block) const {
  const auto list = static_cast<std::size_t>(head * q_blocks() + q_block);
  return std::span(indices).subspan(static_cast<std::size_t>(offsets[list]),
                                    static_cast<std::size_t>(offsets[list + 1] - offsets[list]));
}

void check_block_lists(const BlockLists& blocks, std::int64_t q_tokens, std::int64_t k_tokens) {
  check_bounds("query", blocks.q_bounds, q_tokens);
  check_bounds("key", blocks.k_bounds, k_tokens);
  if (blocks.heads < 1) throw_input_error("block lists of {} heads: at least 1", blocks.heads);
  const auto lists = static_cast<std::size_t>(blocks.heads * blocks.q_blocks());
  const auto& offsets = blocks.offsets;
  if (offsets.size() != lists + 1 || offsets.front() != 0 ||
      offsets.back() != static_cast<std::int64_t>(blocks.indices.size()) ||
      !std::is_sorted(offsets.begin(), offsets.end())) {
    throw_input_error(
        "block list offsets must be {} ascending numbers from 0 to the {} kept blocks", lists + 1,
        blocks.indices.size());
  }
  for_each_piece(static_cast<std::int64_t>(lists), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      check_list(blocks, static_cast<int>(row / blocks.q_blocks()), row % blocks.q_blocks());
    }
  });
}

std::int64_t block_of(const std::vector<std::int64_t>& bounds, std::int64_t token) {
  return std::upper_bound(bounds.begin(), bounds.end(), token) - bounds.begin() - 1;
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

namespace {

/// The cells of one query block's tiles with key blocks, the same for all heads: worked out when a
/// head first keeps the block.
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

}  // namespace

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
  ThreadPool::global().parallel_for((q_blocks + kPiece - 1) / kPiece, add_piece);
  return totals;
}

}  // namespace longca
