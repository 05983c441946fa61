#pragma once

#include <cstdint>
#include <vector>

#include "core/memory.h"
#include "core/tensor.h"

namespace longca {

/// Tokens [first, first + tokens) of one head of a device tensor in host memory, [tokens, 1, dim],
/// after what is queued on the device's stream.
HostTensor copy_tokens(const ConstTensorView& x, std::int64_t head, std::int64_t first,
                       std::int64_t tokens);
/// Copies whole heads, keeping the memory that they pass through.
class HeadCopier {
 public:
  /// values ← the head as float32 [tokens, dim].
  void copy(const ConstTensorView& x, std::int64_t head, std::vector<float>& values);

 private:
  HostBuffer staging_;
};

}  // namespace longca
