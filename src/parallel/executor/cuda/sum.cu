#include <array>
#include <type_traits>

#include "core/cuda/elementwise.cuh"
#include "core/cuda/rows.h"
#include "parallel/executor/cuda/step_math_kernels.h"
#include "parallel/executor/cuda/vectors.cuh"

namespace longca {
namespace {

constexpr int kMaxParts = static_cast<int>(StepMath::kMaxParts);

/// kParts: 1, or kMaxParts with the actual number in `count`.
template <typename Part, typename To, int kWidth, int kParts>
struct Sum {
  using Value = Vector<float, kWidth>;
  std::array<Pieces<Part>, kParts> parts;
  int count = 0;
  Pieces<float> accumulator;  ///< absent if without data
  Pieces<To> to;

  template <typename T>
  static __device__ T* element(const Pieces<T>& pieces, Place place) {
    place.piece *= kWidth;
    return &pieces.at(place);
  }
  __device__ Value load(const Place& place) const {
    // Starts from the first part, not from 0, which would lose the sign of −0.
    Value sum = load_wide<Part, kWidth>(element(parts[0], place));
#pragma unroll
    for (int i = 1; i < kParts; ++i) {
      if (i < count) add(sum, load_wide<Part, kWidth>(element(parts[i], place)));
    }
    if (accumulator.data != nullptr)
      add(sum, load_wide<float, kWidth>(element(accumulator, place)));
    return sum;
  }
  __device__ void store(const Place& place, const Value& value) const {
    store_rounded<To, kWidth>(element(to, place), value);
  }
  static __device__ void add(Value& sum, const Value& summand) {
#pragma unroll
    for (int e = 0; e < kWidth; ++e) sum.values[e] += summand.values[e];
  }
};

/// The tensors of one sum, with their rows joined in the same way.
struct Operands {
  std::array<ByteRows, kMaxParts> parts;
  int count = 0;
  ByteRows accumulator;
  ByteRows to;

  Operands(std::span<const ConstTensorView> from, const ConstTensorView& held,
           const TensorView& result)
      : count(static_cast<int>(from.size())), to(byte_rows(result)) {
    // Absent operands take the shape of a present one, so as not to prevent joining.
    for (std::size_t i = 0; i < kMaxParts; ++i) {
      parts[i] = byte_rows(from[std::min(i, from.size() - 1)]);
    }
    accumulator = held.data != nullptr ? byte_rows(held) : to;
    join_rows({&parts[0], &parts[1], &parts[2], &parts[3], &accumulator, &to});
    if (held.data == nullptr) accumulator = {};
  }
};
static_assert(kMaxParts == 4);

template <typename Part, typename To>
bool four_wide(const Operands& operands) {
  bool wide = alignment_bits(operands.to) % (4 * sizeof(To)) == 0 &&
              alignment_bits(operands.accumulator) % (4 * sizeof(float)) == 0;
  for (const ByteRows& part : operands.parts) {
    wide = wide && alignment_bits(part) % (4 * sizeof(Part)) == 0;
  }
  return wide;
}

template <typename Part, typename To, int kWidth, int kParts>
void launch(const Operands& operands, cudaStream_t stream) {
  Sum<Part, To, kWidth, kParts> sum;
  for (std::size_t i = 0; i < kParts; ++i) sum.parts[i] = Pieces<Part>(operands.parts[i]);
  sum.count = operands.count;
  sum.accumulator = Pieces<float>(operands.accumulator);
  sum.to = Pieces<To>(operands.to);
  run_elementwise(operands.to, kWidth * sizeof(To), sum, stream);
}

template <typename Part, typename To>
void launch(const Operands& operands, cudaStream_t stream) {
  if (!four_wide<Part, To>(operands)) return launch<Part, To, 1, kMaxParts>(operands, stream);
  if (operands.count == 1) return launch<Part, To, 4, 1>(operands, stream);
  launch<Part, To, 4, kMaxParts>(operands, stream);
}

}  // namespace

void sum_tensors(std::span<const ConstTensorView> parts, const ConstTensorView& accumulator,
                 const TensorView& to, cudaStream_t stream) {
  const Operands operands(parts, accumulator, to);
  with_type(parts.front().dtype, [&](auto* part) {
    with_type(to.dtype, [&](auto* result) {
      launch<std::remove_pointer_t<decltype(part)>, std::remove_pointer_t<decltype(result)>>(
          operands, stream);
    });
  });
}

}  // namespace longca
