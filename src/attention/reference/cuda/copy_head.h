#pragma once

#include <cstdint>
#include <vector>

#include "core/memory.h"
#include "core/tensor.h"

namespace longca {

/// Copies tokens [first, first + tokens) of one head of a device tensor [tokens, heads, dim] to
/// host memory, [tokens, 1, dim], in order on the device's stream; synchronous.
HostTensor copy_tokens(const ConstTensorView& x, std::int64_t head, std::int64_t first,
                       std::int64_t tokens);
/// Copies heads to the host and reuses its staging memory.
class HeadCopier {
 public:
  /// values ← the head as float32 [tokens, dim].
  void copy(const ConstTensorView& x, std::int64_t head, std::vector<float>& values);

 private:
  HostBuffer staging_;
};

}  // namespace longca
