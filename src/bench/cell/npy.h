#pragma once

#include <filesystem>
#include <span>

#include "core/tensor.h"

namespace longca {

/// Writes a tensor as NumPy's .npy, version 1.0: float32, shape (tokens, heads, dim), C order;
/// narrower types are widened. Throws InputError or SystemError if it cannot be written; an older
/// file then stays.
void write_npy(const std::filesystem::path& path, const ConstTensorView& tensor);
/// The same for a log-sum-exp: shape (heads, tokens).
void write_npy(const std::filesystem::path& path, const ConstLseView& lse);
/// The same for a list: shape (size,).
void write_npy(const std::filesystem::path& path, std::span<const float> values);

}  // namespace longca
