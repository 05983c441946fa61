#pragma once

#include <vector>

#include "mask/mask.h"
#include "mask/range.h"

namespace longca {

/// Orders the parts of a partition so that parts which see the same keys come into the same node,
/// of `node` consecutive ones, and few keys cross between nodes. Of several orders, the given one
/// among them, takes that in which the part with most to send and receive in a backward pass has
/// least (NodeRelays), counting a gradient as two keys. Returns the part at each place.
std::vector<int> node_order(const Mask& mask, const std::vector<std::vector<Range>>& parts,
                            int node);

}  // namespace longca
