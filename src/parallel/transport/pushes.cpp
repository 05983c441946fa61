#include "parallel/transport/pushes.h"

#include <cstddef>

namespace longca {
namespace {

/// Views a contiguous transfer as one row.
Transfer as_row(Transfer transfer) {
  transfer.row_bytes = transfer.stride_bytes = transfer.bytes();
  transfer.rows = 1;
  return transfer;
}

std::int64_t distance(const void* from, const void* to) {
  return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(to) -
                                   reinterpret_cast<std::intptr_t>(from));
}

/// Appends `next` (one row) to `end` as its next row; false if the stride does not fit.
bool append(Transfer& end, const Transfer& next, std::int64_t max_stride) {
  const std::int64_t stride = end.rows == 1 ? distance(end.data, next.data) : end.stride_bytes;
  if (stride < end.row_bytes || stride > max_stride) return false;
  if (distance(end.data, next.data) != end.rows * stride) return false;
  end.stride_bytes = stride;
  ++end.rows;
  return true;
}

bool append(Push& push, const Push& next, std::int64_t max_stride) {
  if (next.from.peer != push.from.peer || next.from.row_bytes != push.from.row_bytes) return false;
  Push joined = push;
  if (!append(joined.from, next.from, max_stride) || !append(joined.to, next.to, max_stride)) {
    return false;
  }
  push = joined;
  return true;
}

}  // namespace

std::vector<Push> join_pushes(const std::vector<Push>& pushes, std::int64_t max_stride) {
  std::vector<Push> joined;
  bool open = false;  // the last push is made of contiguous messages: another may join it
  for (const Push& push : pushes) {
    const bool flat = is_contiguous(push.from) && is_contiguous(push.to);
    const Push next = flat ? Push{as_row(push.from), as_row(push.to)} : push;
    if (flat && open && append(joined.back(), next, max_stride)) continue;
    joined.push_back(next);
    open = flat;
  }
  return joined;
}

}  // namespace longca
