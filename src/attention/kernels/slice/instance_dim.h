#pragma once

#include "attention/api/problem.h"

namespace longca::slice {

/// The head dimension of the sm_90a instances that compute `dims`, equal ones that are multiples of
/// 16 of at most 128: columns from there on are zeros. 0 for others.
constexpr int instance_dim(const DimPair& dims) {
  if (dims.value_dim != dims.head_dim || dims.head_dim > 128) return 0;
  return dims.head_dim <= 64 ? 64 : 128;
}

}  // namespace longca::slice
