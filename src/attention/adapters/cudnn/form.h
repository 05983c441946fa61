#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/api/problem.h"
#include "mask/mask.h"

namespace longca {

/// The mask in the form of cuDNN's attention: one diagonal band over one sequence, or packed
/// sequences, all full or all causal. NVIDIA, "cuDNN frontend: SDPA", 2026.
struct CudnnForm {
  std::int64_t batch = 1;         ///< number of sequences
  std::int64_t max_tokens_q = 0;  ///< of the longest sequence
  std::int64_t max_tokens_k = 0;
  /// Query i attends to keys j > i + offset − left_bound (the bound counts the diagonal's key).
  std::optional<std::int64_t> left_bound;
  /// Query i attends to keys j ≤ i + offset + right_bound.
  std::optional<std::int64_t> right_bound;
  /// offset = tokens_k − tokens_q instead of 0.
  bool bottom_right = false;
  /// Bounds of packed sequences, from 0 to the number of tokens; empty for one sequence.
  std::vector<std::int64_t> cu_seqlens;

  bool packed() const { return !cu_seqlens.empty(); }
  bool operator==(const CudnnForm&) const = default;
};

/// Nothing for a mask that cuDNN cannot express. The mask must have queries and keys.
std::optional<CudnnForm> cudnn_form(const Mask& mask);

/// Ragged offsets of the sequences in a tensor with `elements` elements per token.
std::vector<std::int64_t> ragged_offsets(const CudnnForm& form, std::int64_t elements);

/// Tokens per sequence.
std::vector<std::int32_t> sequence_lengths(const CudnnForm& form);

}  // namespace longca
