#include "parallel/executor/staging.h"

#include <algorithm>

namespace longca {

bool is_contiguous(const ConstTensorView& tensor) {
  return tensor.head_stride == tensor.dim && tensor.token_stride == tensor.heads * tensor.dim;
}

bool is_contiguous(const ConstLseView& lse) {
  return lse.head_stride == lse.tokens;
}

std::int64_t Scratch::take(std::int64_t bytes) {
  const std::int64_t offset = used_;
  used_ += aligned(bytes);
  max_ = std::max(max_, used_);
  return offset;
}

void Scratch::allocate(MemoryTracker& memory) {
  buffer_ = Buffer(memory, max_);
}

StagedTensor StagedTensor::in(Scratch& scratch, const TensorView& own, DType dtype) {
  const std::int64_t offset = scratch.take(own.tokens * own.heads * own.dim * size_of(dtype));
  const TensorView used{nullptr, dtype, own.tokens, own.heads, own.dim, own.heads * own.dim,
                        own.dim};
  return {own, used, offset};
}

void StagedTensor::place(const Scratch& scratch) {
  if (staged()) used.data = scratch.at(offset);
}

StagedLse StagedLse::in(Scratch& scratch, const LseView& own) {
  return {
      own, {nullptr, own.heads, own.tokens, own.tokens}, scratch.take(own.heads * own.tokens * 4)};
}

void StagedLse::place(const Scratch& scratch) {
  if (staged()) used.data = reinterpret_cast<float*>(scratch.at(offset));
}

}  // namespace longca
