#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/api/problem.h"
#include "attention/inputs/inputs.h"
#include "bench/cell/margins.h"
#include "bench/suite/case.h"
#include "core/device.h"
#include "core/tensor.h"

namespace longca {

/// Bytes of a contiguous tensor or lse.
std::int64_t contiguous_bytes(const TensorView& t);
std::int64_t contiguous_bytes(const LseView& lse);

/// The byte whose repetition is NaN in every dtype.
inline constexpr unsigned char kPoison = 0xff;
/// Sets every byte of contiguous tensors; those without data are left out, here and below.
void fill(Device& device, std::initializer_list<TensorView> tensors, unsigned char byte);
void fill(Device& device, const LseView& lse, unsigned char byte);
/// Fills contiguous tensors with NaN, which no correct kernel computes: missing writes show.
void poison(Device& device, std::initializer_list<TensorView> tensors);
void poison(Device& device, const LseView& lse);

/// A hash of contiguous tensors: equal for values that are equal to the bit.
std::uint64_t hash_values(Device& device, std::initializer_list<TensorView> tensors);

/// The tensors of a pass: inputs and results. Gradients exist only for a backward pass, whose
/// inputs o and lse are, too; a step writes all.
struct PassTensors {
  TensorView q, k, v, dout;
  TensorView o;
  /// Its parts, of some heads each: one of all heads, or over ranks what the plan leaves on a rank.
  std::vector<LseView> lse;
  TensorView dq, dk, dv;
  TensorView dsink;  ///< [1, heads_q, 1] float32, of a problem with sinks; else without data
};

/// Sets every byte of a pass's results: o and lse, all gradients, or for a step both.
void fill_results(Device& device, const PassTensors& tensors, Pass pass, unsigned char byte);
/// The memory of these results, without the gaps between the heads of an lse.
std::vector<std::span<const std::byte>> result_bytes(const PassTensors& tensors, Pass pass);
/// A hash of these results.
std::uint64_t hash_results(Device& device, const PassTensors& tensors, Pass pass);

/// A contiguous array that a kernel writes, between two margins in which it must not.
template <typename View>
class OutputArray {
 public:
  OutputArray() = default;
  /// `view` has everything but its data.
  OutputArray(MemoryTracker& memory, View view) : bytes_(contiguous_bytes(view)), view_(view) {
    const std::int64_t before = begin_behind_margin(0, bytes_);
    buffer_ = Buffer(memory, before + bytes_ + kOutputMargin);
    view_.data = reinterpret_cast<decltype(view_.data)>(buffer_.as<std::byte>() + before);
  }

  const View& view() const { return view_; }
  /// Bytes of the array, without the margins.
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
  Buffer buffer_;
  View view_;
};
using OutputTensor = OutputArray<TensorView>;
using OutputLse = OutputArray<LseView>;

/// What a cell writes. Gradients exist only for a backward pass.
struct Outputs {
  Device* device = nullptr;
  OutputTensor o;  ///< [tokens_q, heads_q, value_dim]
  OutputLse lse;   ///< [heads_q, tokens_q]
  OutputTensor dq, dk, dv;
  OutputTensor dsink;  ///< [1, heads_q, 1] float32, of a problem with sinks

  static Outputs for_problem(const Problem& problem);

  ForwardArgs forward_args(const Inputs& inputs) const;
  BackwardArgs backward_args(const Inputs& inputs) const;
  PassTensors with(const Inputs& inputs) const;
  void poison_forward() const;
  void poison_backward() const;
  /// The first margin that was written since `for_problem`, "64 bytes behind lse"; empty if none.
  /// Waits for the device.
  std::string written_margin() const;

 private:
  Margins margins() const;
};

/// A hash of all input values, to notice a kernel that writes into them.
std::uint64_t fingerprint(const Inputs& inputs, Device& device);

/// Bytes of inputs and outputs of a problem's pass.
std::int64_t tensor_bytes(const Problem& problem);

}  // namespace longca
