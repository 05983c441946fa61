#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace longca {

/// Tokens [first, first + tokens) of one head of a device tensor in host memory, [tokens, 1, dim],
/// after what is queued on the device's stream.
HostTensor copy_tokens(const ConstTensorView& x, std::int64_t head, std::int64_t first,
                       std::int64_t tokens);
/// A whole head as float32 [tokens, dim].
std::vector<float> copy_head(const ConstTensorView& x, std::int64_t head);

}  // namespace longca
