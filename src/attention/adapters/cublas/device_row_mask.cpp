#include "attention/adapters/cublas/device_row_mask.h"

#include <vector>

#include "core/device.h"

namespace longca::naive {
namespace {

template <typename T>
Buffer on_device(const std::vector<T>& values) {
  if (values.empty()) return {};
  Device& device = Device::get(DeviceKind::cuda);
  Buffer buffer(device.memory(), static_cast<std::int64_t>(values.size() * sizeof(T)));
  device.copy(buffer.data(), values.data(), buffer.bytes());
  return buffer;
}

}  // namespace

DeviceRowMask::DeviceRowMask(const Mask& mask) {
  const RowMask rows = row_mask(mask);
  band_of_row_ = on_device(rows.band_of_row);
  band_offsets_ = on_device(rows.band_offsets);
  slices_ = on_device(rows.slices);
  block_of_row_ = on_device(rows.block_of_row);
  block_of_key_ = on_device(rows.block_of_key);
  kept_ = on_device(rows.kept);
  view_ = {.band_of_row = band_of_row_.as<std::int32_t>(),
           .band_offsets = band_offsets_.as<std::int32_t>(),
           .slices = slices_.as<RowMask::MaskSlice>(),
           .block_of_row = block_of_row_.as<std::int32_t>(),
           .block_of_key = block_of_key_.as<std::int32_t>(),
           .kept = kept_.as<std::uint32_t>(),
           .heads = rows.heads,
           .q_blocks = rows.q_blocks,
           .words = rows.words};
}

std::int64_t DeviceRowMask::bytes() const {
  std::int64_t bytes = 0;
  for (const Buffer* buffer :
       {&band_of_row_, &band_offsets_, &slices_, &block_of_row_, &block_of_key_, &kept_}) {
    bytes += buffer->bytes();
  }
  return bytes;
}

}  // namespace longca::naive
