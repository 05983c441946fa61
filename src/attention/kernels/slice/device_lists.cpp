#include "attention/kernels/slice/device_lists.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "attention/kernels/common/mma/plan_tools.h"

namespace longca::slice {

namespace {

std::vector<QueryTile> tiles_in_order(const TileLists& lists) {
  std::vector<QueryTile> tiles;
  tiles.reserve(lists.tiles.size());
  for (std::size_t i = 0; i < lists.tiles.size(); ++i) {
    const std::int64_t list = static_cast<std::int64_t>(i) / lists.tiles_per_list;
    tiles.push_back(lists.tiles[static_cast<std::size_t>(list * lists.tiles_per_list +
                                                         std::int64_t{lists.order[i]})]);
  }
  return tiles;
}

}  // namespace

UploadedLists::UploadedLists(const Mask& mask, const Tiling& tiling,
                             const cost::Platform& platform) {
  if (!tiling.row_pairs && has_block_plan(mask, tiling.pack)) {
    DeviceBlockTiles made = make_device_block_lists(mask, tiling.pack, platform);
    partial_ = std::move(made.partial);
    runs_ = std::move(made.runs);
    upload(made.lists, platform.slice.forward);
  } else {
    upload(make_tile_lists(mask, tiling, platform), platform.slice.forward);
  }
}

void UploadedLists::upload(const TileLists& lists, const cost::SliceForwardCycles& costs) {
  shape_.pack = lists.tiling.pack;
  shape_.row_pairs = lists.tiling.row_pairs;
  const KeyTilesPerQueryTile key_tiles = key_tiles_per_query_tile(lists);
  shape_.unchecked = !lists.joints.empty() || key_tiles.full >= costs.min_unchecked_tiles;
  shape_.in_turn = lists.in_turn && key_tiles.all >= costs.min_in_turn_tiles;
  shape_.list_heads = static_cast<int>(lists.list_heads);
  shape_.tiles_per_list = static_cast<int>(lists.tiles_per_list);
  ArrayUpload upload;
  tiles_ = upload.add(tiles_in_order(lists));
  const bool made_by_device = partial_.data() != nullptr || runs_.data() != nullptr;
  if (lists.list_heads == 1 && !made_by_device && lists.joints.empty())
    starts_ = upload.add(make_tile_starts(lists));
  host_partial_ = upload.add(lists.partial);
  joints_ = upload.add(lists.joints);
  host_runs_ = upload.add(lists.runs);
  patterns_ = upload.add(lists.patterns);
  work_counter_ = upload.add(std::vector<std::int32_t>(2));
  lists_ = upload.copy();
}

DeviceTileLists UploadedLists::args() const {
  DeviceTileLists args = shape_;
  args.tiles = tiles_.in(lists_);
  args.partial = partial_.data() ? partial_.as<PartialTile>() : host_partial_.in(lists_);
  args.joints = joints_.in(lists_);
  args.runs = runs_.data() ? runs_.as<FullRun>() : host_runs_.in(lists_);
  args.patterns = patterns_.in(lists_);
  args.starts = starts_.in(lists_);
  return args;
}

UploadedTransposedLists::UploadedTransposedLists(const Mask& mask, int pack,
                                                 const BackwardWork& work) {
  if (!work.ordered && work.tile_keys == kTileKeys && has_block_plan(mask, pack)) {
    DeviceTransposedTiles made = make_device_transposed_lists(mask, pack, work);
    upload(made.lists);
    segments_ = std::move(made.segments);
  } else {
    upload(make_transposed_lists(mask, pack, work));
  }
}

void UploadedTransposedLists::upload(const TransposedLists& lists) {
  shape_.pack = lists.pack;
  shape_.list_heads = static_cast<int>(lists.list_heads);
  shape_.tiles_per_list = static_cast<int>(lists.tiles_per_list);
  shape_.items_per_order = static_cast<int>(lists.items_per_order);
  shape_.split_tiles = static_cast<int>(lists.split_keys.size());
  shape_.section_heads = lists.section_heads;
  shape_.tells_halves = lists.tells_halves;
  shape_.counts_visits = !lists.region_visits.empty();
  ArrayUpload upload;
  tiles_ = upload.add(lists.tiles);
  host_segments_ = upload.add(lists.segments);
  patterns_ = upload.add(lists.patterns);
  order_ = upload.add(lists.order);
  prior_parts_ = upload.add(lists.prior_parts);
  split_keys_ = upload.add(lists.split_keys);
  region_visits_ = upload.add(lists.region_visits);
  region_order_ = upload.add(lists.region_order);
  lists_ = upload.copy();
}

DeviceTransposedLists UploadedTransposedLists::args() const {
  DeviceTransposedLists args = shape_;
  args.tiles = tiles_.in(lists_);
  args.segments = segments_.data() ? segments_.as<QuerySegment>() : host_segments_.in(lists_);
  args.patterns = patterns_.in(lists_);
  args.order = order_.in(lists_);
  args.prior_parts = prior_parts_.in(lists_);
  args.split_keys = split_keys_.in(lists_);
  args.region_visits = region_visits_.in(lists_);
  args.region_order = region_order_.in(lists_);
  return args;
}

}  // namespace longca::slice
