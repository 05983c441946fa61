#include "parallel/executor/part_store.h"

namespace longca {
namespace {

constexpr std::int64_t kAlignment = 256;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

TensorView rows_of(TensorView tensor, Range rows) {
  tensor.data = static_cast<std::byte*>(tensor.data) +
                rows.begin * tensor.token_stride * size_of(tensor.dtype);
  tensor.tokens = rows.size();
  return tensor;
}

LseView rows_of(LseView lse, Range rows) {
  lse.data += rows.begin;
  lse.tokens = rows.size();
  return lse;
}

std::int64_t PartStore::tensor_bytes() const {
  const TensorView& a = accumulator_;
  return aligned(a.tokens * a.heads * a.dim * size_of(dtype_));
}

std::int64_t PartStore::slot_bytes() const {
  const bool with_lse = lse_.data != nullptr;
  return tensor_bytes() + (with_lse ? aligned(accumulator_.tokens * accumulator_.heads * 4) : 0);
}

Partial PartStore::part(const WaitingPart& part) const {
  const TensorView& a = accumulator_;
  std::byte* const slot = memory_ + part.slot * slot_bytes();
  const TensorView image{slot, dtype_, a.tokens, a.heads, a.dim, a.heads * a.dim, a.dim};
  Partial view{rows_of(image, part.rows), {}};
  if (lse_.data != nullptr) {
    // Parts of disjoint rows have disjoint pieces, whatever their lengths.
    float* const lses = reinterpret_cast<float*>(slot + tensor_bytes());
    view.lse = {lses + part.rows.begin * a.heads, a.heads, part.rows.size(), part.rows.size()};
  }
  return view;
}

void PartStore::call(const MergeCall& call, const TensorView& to, StepMath& math,
                     Stream stream) const {
  const TensorView sums = rows_of(accumulator_, call.rows);
  if (call.parts.empty()) {
    if (call.accumulator) return math.convert(sums, to, stream);
    return math.clear(to, stream);
  }
  std::vector<Partial> parts;
  std::vector<ConstTensorView> tensors;
  for (const WaitingPart& waiting : call.parts) {
    const Partial whole = part(waiting);
    const Range rows{call.rows.begin - waiting.rows.begin, call.rows.end - waiting.rows.begin};
    tensors.emplace_back(rows_of(whole.o, rows));
    if (lse_.data != nullptr) parts.push_back({rows_of(whole.o, rows), rows_of(whole.lse, rows)});
  }
  if (lse_.data == nullptr) {
    return math.sum_all(tensors, call.accumulator ? ConstTensorView(sums) : ConstTensorView(), to,
                        stream);
  }
  const LseView lse = rows_of(lse_, call.rows);
  math.merge_all(parts, call.accumulator ? Partial{sums, lse} : Partial{}, to, lse, stream);
}

void PartStore::merge(const std::vector<MergeCall>& calls, StepMath& math, Stream stream) const {
  for (const MergeCall& c : calls) call(c, rows_of(accumulator_, c.rows), math, stream);
}

void PartStore::deliver(const std::vector<MergeCall>& calls, const TensorView& to,
                        std::int64_t first, StepMath& math, Stream stream) const {
  for (const MergeCall& c : calls) {
    call(c, rows_of(to, {c.rows.begin - first, c.rows.end - first}), math, stream);
  }
}

}  // namespace longca
