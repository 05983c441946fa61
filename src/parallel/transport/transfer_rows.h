#pragma once

#include "core/cuda/rows.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// The rows of a message in this rank's memory, or mapped into it.
inline ByteRows byte_rows(const Transfer& transfer) {
  return {transfer.data, transfer.rows, 1, transfer.row_bytes, transfer.stride_bytes, 0};
}

}  // namespace longca
