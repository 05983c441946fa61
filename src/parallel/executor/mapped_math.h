#pragma once

#include <span>

#include "parallel/executor/step_math.h"
#include "parallel/transport/address_map.h"

namespace longca {

/// The arithmetic of another one, on tensors where a map says that they lie.
class MappedMath final : public StepMath {
 public:
  /// Both must outlive this object.
  MappedMath(StepMath& math, const AddressMap& map) : math_(math), map_(map) {}

  void clear(const TensorView& tensor, Stream stream) override;
  void clear(const LseView& lse, Stream stream) override;
  void copy(const ConstTensorView& from, const TensorView& to, Stream stream) override;
  void copy(const ConstLseView& from, const LseView& to, Stream stream) override;
  void copy_all(std::span<const TensorCopy> copies, Stream stream) override;
  void add(const ConstTensorView& from, const TensorView& into, bool first, Stream stream) override;
  void convert(const ConstTensorView& from, const TensorView& to, Stream stream) override;
  void merge(const Partial& part, const TensorView& o, const LseView& lse, bool first,
             Stream stream) override;
  void merge_all(std::span<const Partial> parts, const Partial& accumulator, const TensorView& o,
                 const LseView& lse, Stream stream) override;
  void sum_all(std::span<const ConstTensorView> parts, const ConstTensorView& accumulator,
               const TensorView& to, Stream stream) override;
  void total_all(std::span<const SumOfRows> sums, Stream stream) override;
  void join_sinks(const float* sink, const TensorView& o, const LseView& lse,
                  Stream stream) override;
  void sink_gradients(const float* sink, float* dsink, const ConstTensorView& dout,
                      const ConstTensorView& o, const ConstLseView& lse, Stream stream) override;

 private:
  Partial at(const Partial& part) const { return {map_.at(part.o), map_.at(part.lse)}; }

  StepMath& math_;
  const AddressMap& map_;
};

}  // namespace longca
