#include "attention/kernels/slice/uploaded_transposed_lists.h"

#include <utility>

#include "attention/kernels/common/mma/plan_tools.h"
#include "attention/kernels/slice/device_transposed_lists.h"
#include "attention/kernels/slice/planner/block_lists.h"

namespace longca::slice {

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
  tiles_ = mma::on_device(lists.tiles);
  segments_ = mma::on_device(lists.segments);
  patterns_ = mma::on_device(lists.patterns);
  order_ = mma::on_device(lists.order);
  shared_keys_ = mma::on_device(lists.split_keys);
  shape_.counts_visits = !lists.region_visits.empty();
  region_visits_ = mma::on_device(lists.region_visits);
  region_order_ = mma::on_device(lists.region_order);
}

DeviceTransposedLists UploadedTransposedLists::args() const {
  DeviceTransposedLists args = shape_;
  args.tiles = tiles_.as<KeyTile>();
  args.segments = segments_.as<QuerySegment>();
  args.patterns = patterns_.as<std::uint64_t>();
  args.order = order_.as<WorkItem>();
  args.split_keys = shared_keys_.as<KeyRange>();
  if (shape_.counts_visits) {
    args.region_visits = region_visits_.as<std::int32_t>();
    args.region_order = region_order_.as<std::int32_t>();
  }
  return args;
}

std::int64_t UploadedTransposedLists::bytes() const {
  return tiles_.bytes() + segments_.bytes() + patterns_.bytes() + order_.bytes() +
         shared_keys_.bytes() + region_visits_.bytes() + region_order_.bytes();
}

}  // namespace longca::slice
