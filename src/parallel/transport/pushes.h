#pragma once

#include <cstdint>
#include <vector>

#include "parallel/transport/communicator.h"

namespace longca {

/// A message that its sender writes into the memory of its receiver: both ends have the same peer,
/// rows and row_bytes.
struct Push {
  Transfer from;
  Transfer to;  ///< as an address of the sender
};

/// Makes one push of several that follow each other where a copy engine can: contiguous at both
/// ends, to one peer, of as many bytes each, and one as far behind the other everywhere, by at
/// least their bytes and at most `most_stride`. So K and V of the same tokens leave as two rows.
/// The bytes are the same, and so is the order.
std::vector<Push> join_pushes(const std::vector<Push>& pushes, std::int64_t most_stride);

/// Whether the rows of a transfer have no gaps between them.
inline bool is_contiguous(const Transfer& transfer) {
  return transfer.rows == 1 || transfer.stride_bytes == transfer.row_bytes;
}

}  // namespace longca
