#pragma once

#include <cstdint>

#include "attention/api/kernel.h"
#include "attention/api/key_sums.h"

namespace longca {

/// The side of a Plan whose backward pass begins with work on the rows alone (the sums of dO · O,
/// say), which can be queued apart while keys are still on their way: a second base class of those
/// that can.
class PreparesRows {
 public:
  virtual ~PreparesRows() = default;
  /// Takes memory of the plan's own for what lies between prepare_rows and the call, so that calls
  /// of plans with the same scratch may come in between. Before the scratch is lent. What was
  /// taken, in bytes: 0 if the plan has no such part or needs more than `most` for it.
  virtual std::int64_t keep_rows(std::int64_t most) = 0;
  /// After keep_rows. Queues what the next backward call with the same dout, o and lse begins with,
  /// on the same stream; that call leaves it out. Memory of k and v need not hold anything yet.
  /// `keys`: as backward_summing will be called, or as_dq. A call of other tensors does all itself.
  virtual void prepare_rows(const BackwardArgs& args, KeyGradients keys) = 0;
};

}  // namespace longca
