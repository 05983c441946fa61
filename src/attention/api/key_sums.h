#pragma once

#include <cstdint>

#include "attention/api/kernel.h"

namespace longca {

/// What a backward pass does with dk and dv while it overwrites dq, in the problem's dtype.
enum class KeyGradients : std::uint8_t {
  as_dq,              ///< overwrites them, in the problem's dtype
  overwrite_float32,  ///< they are float32, and overwritten
  add_float32,        ///< they are float32, and added to
};

/// The side of a Plan whose backward pass can sum gradients of keys, which travel from rank to rank
/// as float32: a second base class of those that can.
class SumsKeys {
 public:
  virtual ~SumsKeys() = default;
  /// As Plan::backward of args without `accumulate`, but for dk and dv.
  virtual void backward_summing(const BackwardArgs& args, KeyGradients keys) = 0;
};

/// Of a Kernel: whether its plans are SumsKeys on this machine.
class HasKeySums {
 public:
  virtual ~HasKeySums() = default;
  virtual bool sums_keys() const = 0;
};

}  // namespace longca
