#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/memory.h"
#include "mask/block_lists.h"
#include "mask/mask.h"

namespace longca {

/// A bitmap of block lists in device memory (layout: block_bits in mask/block_lists.h). Rows are
/// query blocks and columns key blocks, or transposed. A CUDA kernel argument.
struct BlockBits {
  const std::uint32_t* words = nullptr;  ///< [heads, rows, row_words]
  std::int32_t heads = 0;                ///< query head h of H uses list h · heads / H
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  std::int32_t row_words = 0;

  constexpr std::int64_t all_rows() const { return std::int64_t{heads} * rows; }
};

/// The kept blocks of a mask in device memory, the input of every kernel's plan(). Part of the
/// problem like the tensors: created once per mask, outside of plan times, and owned by the mask.
class BlockMap {
 public:
  /// The map of a mask with block lists; the first call copies it to the device. Throws
  /// InternalError for a mask without block lists, OutOfMemory.
  static const BlockMap& of(const Mask& mask);
  /// Sets the map of a mask whose bits [heads, q_blocks, row_words] are already on the device.
  static const BlockMap& adopt(const Mask& mask, Buffer words);

  /// Rows are query blocks.
  BlockBits bits() const;
  /// [q_blocks + 1] and [k_blocks + 1] tokens: block i covers [bounds[i], bounds[i + 1]).
  const std::int32_t* q_bounds() const { return q_bounds_.as<std::int32_t>(); }
  const std::int32_t* k_bounds() const { return k_bounds_.as<std::int32_t>(); }
  /// Number of kept blocks over all lists.
  std::int64_t kept() const { return kept_; }

 private:
  BlockMap(const Mask& mask, Buffer words);

  Buffer words_;
  Buffer q_bounds_, k_bounds_;
  BlockBits bits_;
  std::int64_t kept_ = 0;
};

/// Block lists in CSR form in device memory: the columns of row r of list h, ascending, are
/// indices[offsets[h · rows + r] … offsets[h · rows + r + 1]).
struct DeviceBlockLists {
  Buffer offsets_buffer;  ///< [heads · rows + 1] int64
  Buffer indices_buffer;  ///< [kept] int32

  const std::int64_t* offsets() const { return offsets_buffer.as<std::int64_t>(); }
  const std::int32_t* indices() const { return indices_buffer.as<std::int32_t>(); }
  std::int64_t bytes() const { return offsets_buffer.bytes() + indices_buffer.bytes(); }
};

/// The kept key blocks per (list, query block). This and the following are asynchronous on `stream`
/// and allocate from the device's tracker.
DeviceBlockLists kept_lists(const BlockMap& map, Stream stream);

/// The query blocks that keep it per (list, key block), for backward passes parallel over keys.
DeviceBlockLists transposed_lists(const BlockMap& map, Stream stream);

/// A bitmap and its memory.
struct OwnedBlockBits {
  Buffer buffer;
  BlockBits bits;
};
/// The transposed bitmap: rows are key blocks.
OwnedBlockBits transposed_bits(const BlockMap& map, Stream stream);

/// counts [heads, rows] int32 in device memory: kept columns per row.
void count_kept(const BlockBits& bits, std::int32_t* counts, Stream stream);

}  // namespace longca
