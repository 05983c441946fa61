#include "attention/kernels/slice/device_lists.h"

#include <utility>

#include "attention/kernels/common/mma/plan_tools.h"
#include "core/cuda/upload.h"

namespace longca::slice {

UploadedLists::UploadedLists(const Mask& mask, int pack) {
  if (has_block_plan(mask, pack)) {
    DeviceBlockTiles made = make_device_block_lists(mask, pack);
    upload(made.lists);
    partial_ = std::move(made.partial);
    runs_ = std::move(made.runs);
  } else {
    upload(make_tile_lists(mask, pack));
  }
}

void UploadedLists::upload(const TileLists& lists) {
  shape_.pack = lists.pack;
  shape_.list_heads = static_cast<int>(lists.list_heads);
  shape_.tiles_per_list = static_cast<int>(lists.tiles_per_list);
  tiles_ = on_device(lists.tiles);
  partial_ = on_device(lists.partial);
  runs_ = on_device(lists.runs);
  patterns_ = on_device(lists.patterns);
  order_ = on_device(lists.order);
}

DeviceTileLists UploadedLists::args() const {
  DeviceTileLists args = shape_;
  args.tiles = tiles_.as<QueryTile>();
  args.partial = partial_.as<PartialTile>();
  args.runs = runs_.as<FullRun>();
  args.patterns = patterns_.as<RowIntervals>();
  args.order = order_.as<std::int32_t>();
  return args;
}

std::int64_t UploadedLists::bytes() const {
  return tiles_.bytes() + partial_.bytes() + runs_.bytes() + patterns_.bytes() + order_.bytes();
}

UploadedTransposedLists::UploadedTransposedLists(const Mask& mask, int pack,
                                                 const BackwardWork& work) {
  if (!work.ordered && has_block_plan(mask, pack)) {
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
  tiles_ = on_device(lists.tiles);
  segments_ = on_device(lists.segments);
  patterns_ = on_device(lists.patterns);
  order_ = on_device(lists.order);
  split_keys_ = on_device(lists.split_keys);
  shape_.counts_visits = !lists.region_visits.empty();
  region_visits_ = on_device(lists.region_visits);
  region_order_ = on_device(lists.region_order);
}

DeviceTransposedLists UploadedTransposedLists::args() const {
  DeviceTransposedLists args = shape_;
  args.tiles = tiles_.as<KeyTile>();
  args.segments = segments_.as<QuerySegment>();
  args.patterns = patterns_.as<std::uint64_t>();
  args.order = order_.as<WorkItem>();
  args.split_keys = split_keys_.as<KeyRange>();
  if (shape_.counts_visits) {
    args.region_visits = region_visits_.as<std::int32_t>();
    args.region_order = region_order_.as<std::int32_t>();
  }
  return args;
}

std::int64_t UploadedTransposedLists::bytes() const {
  return tiles_.bytes() + segments_.bytes() + patterns_.bytes() + order_.bytes() +
         split_keys_.bytes() + region_visits_.bytes() + region_order_.bytes();
}

}  // namespace longca::slice
