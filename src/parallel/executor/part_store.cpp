#include "parallel/executor/part_store.h"

namespace longca {

Box inside(const Box& from, const Box& box) {
  return {{box.rows.begin - from.rows.begin, box.rows.end - from.rows.begin},
          {box.heads.begin - from.heads.begin, box.heads.end - from.heads.begin}};
}

TensorView box_of(TensorView tensor, const Box& box) {
  const std::int64_t skipped =
      box.rows.begin * tensor.token_stride + box.heads.begin * tensor.head_stride;
  tensor.data = static_cast<std::byte*>(tensor.data) + skipped * size_of(tensor.dtype);
  tensor.tokens = box.rows.size();
  tensor.heads = box.heads.size();
  return tensor;
}

LseView box_of(LseView lse, const Box& box) {
  lse.data += box.heads.begin * lse.head_stride + box.rows.begin;
  lse.tokens = box.rows.size();
  lse.heads = box.heads.size();
  return lse;
}

std::int64_t PartStore::tensor_bytes() const {
  const TensorView& a = accumulator_;
  return aligned(a.tokens * a.heads * a.dim * size_of(dtype_));
}

std::int64_t PartStore::lse_bytes() const {
  return lse_.data != nullptr ? aligned(accumulator_.tokens * accumulator_.heads * 4) : 0;
}

/// Slot 0 shares the result's lse unless that holds merged values of the accumulator.
int PartStore::first_lse_slot() const {
  const bool through = result_.data != nullptr && !whole_heads_ && !queue_.merges_early();
  return through ? std::min(1, queue_.slots()) : 0;
}

Partial PartStore::part(const WaitingPart& part) const {
  const TensorView& a = accumulator_;
  TensorView image = result_;
  if (part.slot >= first_tensor_slot()) {
    std::byte* const slot = memory_ + (part.slot - first_tensor_slot()) * tensor_bytes();
    image = {slot, dtype_, a.tokens, a.heads, a.dim, a.heads * a.dim, a.dim};
  }
  Partial view{box_of(image, part.box), {}};
  if (lse_.data == nullptr) return view;
  if (part.slot < first_lse_slot()) {
    view.lse = box_of(lse_, part.box);
    return view;
  }
  auto* const lses = reinterpret_cast<float*>(memory_ + tensor_slots() * tensor_bytes() +
                                              (part.slot - first_lse_slot()) * lse_bytes());
  if (whole_heads_) {
    // Parts of disjoint rows occupy disjoint memory, whatever their lengths.
    const Range rows = part.box.rows;
    view.lse = {lses + rows.begin * a.heads, a.heads, rows.size(), rows.size()};
  } else {
    view.lse = box_of(LseView{lses, a.heads, a.tokens, a.tokens}, part.box);
  }
  return view;
}

void PartStore::call(const MergeCall& call, const TensorView& to, StepMath& math,
                     Stream stream) const {
  const TensorView sums = box_of(accumulator_, call.box);
  if (call.parts.empty()) {
    if (call.accumulator) return math.convert(sums, to, stream);
    return math.clear(to, stream);
  }
  std::vector<Partial> parts;
  std::vector<ConstTensorView> tensors;
  for (const WaitingPart& waiting : call.parts) {
    const Partial whole = part(waiting);
    const Box box = inside(waiting.box, call.box);
    tensors.emplace_back(box_of(whole.o, box));
    if (lse_.data != nullptr) parts.push_back({box_of(whole.o, box), box_of(whole.lse, box)});
  }
  if (lse_.data == nullptr) {
    return math.sum_all(tensors, call.accumulator ? ConstTensorView(sums) : ConstTensorView(), to,
                        stream);
  }
  const LseView lse = box_of(lse_, call.box);
  math.merge_all(parts, call.accumulator ? Partial{sums, lse} : Partial{}, to, lse, stream);
}

void PartStore::merge(const std::vector<MergeCall>& calls, StepMath& math, Stream stream) const {
  for (const MergeCall& c : calls) call(c, box_of(accumulator_, c.box), math, stream);
}

void PartStore::deliver(const std::vector<MergeCall>& calls, const TensorView& to, const Box& box,
                        StepMath& math, Stream stream) const {
  for (const MergeCall& c : calls) {
    const bool delivered = result_.data != nullptr && is_in_place(c);
    if (!delivered) {
      call(c, box_of(to, inside(box, c.box)), math, stream);
    } else if (lse_.data != nullptr && first_lse_slot() == 0) {
      const WaitingPart& only = c.parts.front();
      math.copy(box_of(part(only).lse, inside(only.box, c.box)), box_of(lse_, c.box), stream);
    }
  }
}

}  // namespace longca
