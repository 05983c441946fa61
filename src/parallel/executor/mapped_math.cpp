#include "parallel/executor/mapped_math.h"

#include <vector>

namespace longca {

void MappedMath::clear(const TensorView& tensor, Stream stream) {
  math_.clear(map_.at(tensor), stream);
}

void MappedMath::clear(const LseView& lse, Stream stream) {
  math_.clear(map_.at(lse), stream);
}

void MappedMath::copy(const ConstTensorView& from, const TensorView& to, Stream stream) {
  math_.copy(map_.at(from), map_.at(to), stream);
}

void MappedMath::copy(const ConstLseView& from, const LseView& to, Stream stream) {
  math_.copy(map_.at(from), map_.at(to), stream);
}

void MappedMath::copy_all(std::span<const TensorCopy> copies, Stream stream) {
  std::vector<TensorCopy> mapped;
  mapped.reserve(copies.size());
  for (const TensorCopy& copy : copies) mapped.push_back({map_.at(copy.from), map_.at(copy.to)});
  math_.copy_all(mapped, stream);
}

void MappedMath::add(const ConstTensorView& from, const TensorView& into, bool first,
                     Stream stream) {
  math_.add(map_.at(from), map_.at(into), first, stream);
}

void MappedMath::convert(const ConstTensorView& from, const TensorView& to, Stream stream) {
  math_.convert(map_.at(from), map_.at(to), stream);
}

void MappedMath::merge(const Partial& part, const TensorView& o, const LseView& lse, bool first,
                       Stream stream) {
  math_.merge(at(part), map_.at(o), map_.at(lse), first, stream);
}

void MappedMath::merge_all(std::span<const Partial> parts, const Partial& accumulator,
                           const TensorView& o, const LseView& lse, Stream stream) {
  std::vector<Partial> mapped;
  mapped.reserve(parts.size());
  for (const Partial& part : parts) mapped.push_back(at(part));
  math_.merge_all(mapped, at(accumulator), map_.at(o), map_.at(lse), stream);
}

void MappedMath::sum_all(std::span<const ConstTensorView> parts, const ConstTensorView& accumulator,
                         const TensorView& to, Stream stream) {
  std::vector<ConstTensorView> mapped;
  mapped.reserve(parts.size());
  for (const ConstTensorView& part : parts) mapped.push_back(map_.at(part));
  math_.sum_all(mapped, map_.at(accumulator), map_.at(to), stream);
}

void MappedMath::total_all(std::span<const SumOfRows> sums, Stream stream) {
  std::vector<SumOfRows> mapped(sums.begin(), sums.end());
  for (SumOfRows& sum : mapped) {
    for (RowsOfSum& part : sum.parts) part.from = map_.at(part.from);
    sum.to = map_.at(sum.to);
  }
  math_.total_all(mapped, stream);
}

void MappedMath::join_sinks(const float* sink, const TensorView& o, const LseView& lse,
                            Stream stream) {
  math_.join_sinks(sink, map_.at(o), map_.at(lse), stream);
}

void MappedMath::sink_gradients(const float* sink, float* dsink, const ConstTensorView& dout,
                                const ConstTensorView& o, const ConstLseView& lse, Stream stream) {
  math_.sink_gradients(sink, dsink, map_.at(dout), map_.at(o), map_.at(lse), stream);
}

}  // namespace longca
