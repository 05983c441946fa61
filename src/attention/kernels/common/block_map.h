#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/memory.h"
#include "mask/block_lists.h"
#include "mask/mask.h"

namespace longca {

/// Block lists as bits in device memory, in the layout of mask/block_bits.h; rows are query blocks
/// and columns key blocks, or, transposed, the other way round. May be passed to a CUDA kernel.
struct BlockBits {
  const std::uint32_t* words = nullptr;  ///< [heads, rows, row_words]
  std::int32_t heads = 0;                ///< lists: query head h of H uses list h · heads / H
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  std::int32_t row_words = 0;

  constexpr std::int64_t all_rows() const { return std::int64_t{heads} * rows; }
};

/// The kept blocks of a mask in device memory, from which every kernel's plan() starts. Belongs to
/// the problem, like the inputs: made once per mask, outside of any plan's time, and kept with the
/// mask.
class BlockMap {
 public:
  /// The map of a mask with block lists; the first call copies to the device. Throws InternalError
  /// for a mask without block lists, OutOfMemory.
  static const BlockMap& of(const Mask& mask);
  /// The same for a mask whose bits are on the device already, [heads, q_blocks, row_words].
  static const BlockMap& adopt(const Mask& mask, Buffer words);

  /// Rows are query blocks.
  BlockBits bits() const;
  /// [q_blocks + 1] and [k_blocks + 1] tokens: block i covers [bounds[i], bounds[i + 1]).
  const std::int32_t* q_bounds() const { return q_bounds_.as<std::int32_t>(); }
  const std::int32_t* k_bounds() const { return k_bounds_.as<std::int32_t>(); }
  /// Kept blocks of all lists together.
  std::int64_t kept() const { return kept_; }

 private:
  BlockMap(const Mask& mask, Buffer words);

  Buffer words_;
  Buffer q_bounds_, k_bounds_;
  BlockBits bits_;
  std::int64_t kept_ = 0;
};

/// Lists in CSR form in device memory: the columns of row r of list h, ascending, are
/// indices[offsets[h · rows + r] … offsets[h · rows + r + 1]).
struct DeviceBlockLists {
  Buffer offsets_buffer;  ///< [heads · rows + 1] int64
  Buffer indices_buffer;  ///< [kept] int32

  const std::int64_t* offsets() const { return offsets_buffer.as<std::int64_t>(); }
  const std::int32_t* indices() const { return indices_buffer.as<std::int32_t>(); }
  std::int64_t bytes() const { return offsets_buffer.bytes() + indices_buffer.bytes(); }
};

/// Per (list, query block) the kept key blocks. Queued on `stream`, as are the others: no call
/// waits for the device. Memory is the device tracker's.
DeviceBlockLists kept_lists(const BlockMap& map, Stream stream);

/// Per (list, key block) the query blocks that keep it: what a backward pass over keys walks.
DeviceBlockLists transposed_lists(const BlockMap& map, Stream stream);

/// Bits whose rows are key blocks.
struct OwnedBlockBits {
  Buffer buffer;
  BlockBits bits;
};
OwnedBlockBits transposed_bits(const BlockMap& map, Stream stream);

/// counts[h · rows + r]: kept columns of a row, [heads · rows] int32 of device memory.
void count_kept(const BlockBits& bits, std::int32_t* counts, Stream stream);

}  // namespace longca
