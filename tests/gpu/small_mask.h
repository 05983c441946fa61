#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "mask/generators.h"

namespace longca::testing {

struct Heads {
  int q, k;
};

/// Small parameters, so that masks stay what they are at few tokens.
inline Mask small_mask(const std::string& name, std::int64_t tokens, Heads heads = {1, 1},
                       const std::string& block_heads = "kv", std::int64_t block = 64) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = tokens;
  spec.window = std::max<std::int64_t>(1, tokens / 6);
  spec.block_tokens = std::max<std::int64_t>(1, tokens / 9);
  spec.lengths = "pile";
  spec.heads_q = heads.q;
  spec.heads_k = heads.k;
  spec.block_heads = block_heads;
  spec.block = block;
  return generate_mask(spec).mask;
}

}  // namespace longca::testing
