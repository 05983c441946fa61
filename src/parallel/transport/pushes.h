#pragma once

#include <cstdint>
#include <vector>

#include "parallel/transport/communicator.h"

namespace longca {

/// A message that the sender writes into the receiver's memory. Both ends have the same peer (the
/// receiver), rows and row_bytes.
struct Push {
  Transfer from;
  Transfer to;  ///< mapped into the sender's address space
};

/// Joins consecutive pushes into 2D copies: contiguous at both ends, to one peer, of equal size, at
/// a constant stride from that size to `max_stride` (bytes). K and V of the same tokens thus leave
/// as one copy of two rows. Bytes and order stay the same.
std::vector<Push> join_pushes(const std::vector<Push>& pushes, std::int64_t max_stride);

/// Whether the rows of a transfer have no gaps between them.
inline bool is_contiguous(const Transfer& transfer) {
  return transfer.rows == 1 || transfer.stride_bytes == transfer.row_bytes;
}

}  // namespace longca
