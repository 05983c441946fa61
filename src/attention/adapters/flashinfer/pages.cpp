#include "attention/adapters/flashinfer/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <span>
#include <utility>

#include "attention/absent_kernel.h"
#include "attention/adapters/block_form.h"
#include "attention/adapters/flashinfer/flashinfer.h"
#include "core/rounding.h"
#include "mask/list_of_head.h"

namespace longca::flashinfer {
namespace {

std::int64_t size_of_block(const std::vector<std::int64_t>& bounds, std::int64_t block) {
  const auto at = static_cast<std::size_t>(block);
  return bounds[at + 1] - bounds[at];
}

std::int64_t row_keys(const BlockLists& blocks, std::int64_t page,
                      std::span<const std::int32_t> kept) {
  if (kept.empty()) return 0;
  if (page > 1) {  // all but the last are equal
    return static_cast<std::int64_t>(kept.size() - 1) * page +
           size_of_block(blocks.k_bounds, kept.back());
  }
  return std::accumulate(kept.begin(), kept.end(), std::int64_t{0},
                         [&](std::int64_t sum, std::int32_t block) {
                           return sum + size_of_block(blocks.k_bounds, block);
                         });
}

/// A tile of a query block; `row` is the index of the query block over all lists.
struct Item {
  std::size_t row;
  std::int32_t head, tile;
};
using Assignment = std::vector<std::vector<Item>>;

/// Assigns each item to the least loaded CTA, by FlashInfer's own cost estimate.
class PartAssigner {
 public:
  PartAssigner(int tile_q, int ctas) : tile_q_(tile_q), assigned_(static_cast<std::size_t>(ctas)) {
    for (std::size_t cta = 0; cta < assigned_.size(); ++cta) loads_.emplace(0, cta);
  }
  void assign(const Item& item, std::int64_t keys) {
    const auto [cost, cta] = loads_.top();
    loads_.pop();
    loads_.emplace(cost + 2.0 * tile_q_ + static_cast<double>(keys), cta);
    assigned_[cta].push_back(item);
  }
  const Assignment& assigned() const { return assigned_; }

 private:
  using Load = std::pair<double, std::size_t>;  ///< (cost, CTA)
  int tile_q_;
  Assignment assigned_;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads_;
};

WorkList written(const Assignment& assigned, const BlockLists& blocks,
                 const std::vector<PageRow>& rows) {
  const auto q_blocks = static_cast<std::size_t>(blocks.q_blocks());
  WorkList work;
  work.work_begin.push_back(0);
  for (const auto& items : assigned) {
    for (const Item& item : items) {
      const std::size_t block = item.row % q_blocks;
      const std::int64_t begin = blocks.q_bounds[block];
      work.tile.push_back(item.tile);
      work.head.push_back(item.head);
      work.q_begin.push_back(static_cast<std::int32_t>(begin));
      work.q_size.push_back(static_cast<std::int32_t>(blocks.q_bounds[block + 1] - begin));
      work.first.push_back(static_cast<std::int32_t>(rows[item.row].first));
      work.keys.push_back(static_cast<std::int32_t>(rows[item.row].keys));
    }
    work.work_begin.push_back(static_cast<std::int32_t>(work.tile.size()));
  }
  return work;
}

}  // namespace

std::int64_t page_size(const BlockLists& blocks) {
  if (blocks.k_blocks() == 0) return 1;
  const std::int64_t first = size_of_block(blocks.k_bounds, 0);
  const bool equal =
      are_multiples_of(first, blocks.k_bounds) && largest_block(blocks.k_bounds) == first;
  return equal ? first : 1;
}

std::int64_t page_entries(const BlockLists& blocks) {
  if (page_size(blocks) > 1) return static_cast<std::int64_t>(blocks.indices.size());
  std::int64_t keys = 0;
  for (const std::int32_t block : blocks.indices) keys += size_of_block(blocks.k_bounds, block);
  return keys;
}

std::vector<PageRow> page_rows(const BlockLists& blocks) {
  const std::int64_t page = page_size(blocks);
  std::vector<PageRow> rows;
  rows.reserve(blocks.offsets.size());
  std::int64_t first = 0;
  for (int list = 0; list < blocks.heads; ++list) {
    for (std::int64_t i = 0; i < blocks.q_blocks(); ++i) {
      const std::int64_t keys = row_keys(blocks, page, blocks.kept(list, i));
      rows.push_back({first, keys});
      first += ceil_div(keys, page);
    }
  }
  return rows;
}

WorkList assign_work(const BlockLists& blocks, int heads_q, int tile_q, int ctas) {
  const std::vector<PageRow> rows = page_rows(blocks);
  const auto q_blocks = static_cast<std::size_t>(blocks.q_blocks());
  PartAssigner assigner(tile_q, ctas);
  std::vector<std::size_t> order(q_blocks);
  for (int head = 0; head < heads_q; ++head) {
    std::iota(order.begin(), order.end(),
              list_of_head(static_cast<std::size_t>(head), blocks.heads, heads_q) * q_blocks);
    std::ranges::stable_sort(order, std::greater<>{},
                             [&](std::size_t row) { return rows[row].keys; });
    for (const std::size_t row : order) {
      const auto block = static_cast<std::int64_t>(row % q_blocks);
      const std::int64_t tiles = ceil_div(size_of_block(blocks.q_bounds, block), tile_q);
      for (std::int64_t tile = tiles - 1; tile >= 0; --tile) {
        assigner.assign({row, head, static_cast<std::int32_t>(tile)}, rows[row].keys);
      }
    }
  }
  return written(assigner.assigned(), blocks, rows);
}

}  // namespace longca::flashinfer

namespace longca {

Capabilities flashinfer_capabilities() {
  Capabilities can;
  can.name = "flashinfer";
  can.description = "FlashInfer's prefill for Hopper over lists of key pages per query block";
  can.origin = "flashinfer-python 0.7.2";
  can.device = DeviceKind::cuda;
  can.only_architecture = 90;
  can.dtypes = {DType::bfloat16};
  can.head_dims = {128};
  can.static_masks = false;
  can.backward = false;
  can.accumulate = false;
  can.strided = false;  // K and V have to lie alike
  return can;
}

Support flashinfer_can_express(const Problem& problem, const Mask& mask) {
  if (auto support = check_problem(flashinfer_capabilities(), problem, mask); !support.ok()) {
    return support;
  }
  if (!keeps_whole_blocks(mask)) {
    return Support::unsupported(
        "its lists keep whole pages of keys: none that a causal or other mask cuts");
  }
  if (mask.q_tokens() == 0 || mask.k_tokens() == 0) {
    return Support::unsupported("its TMA takes no tensor without tokens");
  }
  const std::int64_t entries = flashinfer::page_entries(*mask.blocks());
  if (entries > std::numeric_limits<std::int32_t>::max()) {
    return Support::unsupported(
        fmt::format("its lists are numbered in 32 bits: this mask needs {} entries", entries));
  }
  return {};
}

#ifndef LONGCA_WITH_FLASHINFER
std::unique_ptr<Kernel> make_flashinfer() {
  return std::make_unique<AbsentKernel>(
      flashinfer_capabilities(),
      "this build is without FlashInfer's headers: let scripts/setup fetch them (PyPI's "
      "flashinfer-python) and build again",
      flashinfer_can_express);
}
#endif

}  // namespace longca
