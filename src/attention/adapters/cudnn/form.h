#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/api/problem.h"
#include "mask/mask.h"

namespace longca {

/// A mask as cuDNN's attention takes it: a diagonal band over the whole of one sequence, or packed
/// sequences, each full or causal. NVIDIA, "cuDNN frontend: SDPA", 2026.
struct CudnnForm {
  std::int64_t batch = 1;         ///< sequences
  std::int64_t max_tokens_q = 0;  ///< of the longest sequence
  std::int64_t max_tokens_k = 0;
  /// Query i sees keys j > i + offset − left_bound (it counts the diagonal's own key).
  std::optional<std::int64_t> left_bound;
  /// Query i sees keys j ≤ i + offset + right_bound.
  std::optional<std::int64_t> right_bound;
  /// offset = tokens_k − tokens_q instead of 0.
  bool bottom_right = false;
  /// Where packed sequences begin, from 0 to the number of tokens; empty for one sequence.
  std::vector<std::int64_t> cu_seqlens;

  bool packed() const { return !cu_seqlens.empty(); }
  bool operator==(const CudnnForm&) const = default;
};

/// Nothing for a mask that cuDNN cannot express. The mask has queries and keys.
std::optional<CudnnForm> cudnn_form(const Mask& mask);

/// Where the sequences of `form` begin in a tensor of `elements` per token, as ragged offsets.
std::vector<std::int64_t> ragged_offsets(const CudnnForm& form, std::int64_t elements);

/// How many tokens each sequence has.
std::vector<std::int32_t> sequence_lengths(const CudnnForm& form);

}  // namespace longca
