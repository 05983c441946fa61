#pragma once

#include <cstdint>
#include <vector>

#include "parallel/executor/executor.h"

namespace longca {

/// Memory of the buffers of one rank's plan. Buffers that messages read or write lie in memory of
/// the communicator, allocated in a single call because that is collective and plans differ between
/// ranks; the others come from the device's tracker. Buffers that only the forward pass uses share
/// memory with those that only the backward pass uses.
class PlanMemory {
 public:
  /// Binds `tensors` to the external buffers. Collective, as Communicator::allocate is.
  PlanMemory(const RankPlan& plan, const Problem& problem, const RankTensors& tensors,
             Communicator& communicator);

  TensorView tensor(const Region& region) const;
  LseView lse(const Region& region) const;
  OpViews views(const Op& op) const;
  /// The exchange's messages as transfers, without empty ones.
  TransferGroup transfers(const Exchange& exchange) const;
  std::int64_t bytes() const { return bytes_; }

 private:
  void bind(const RankTensors& tensors);
  void place(int buffer, void* data);
  bool is_lse(const Region& region) const;
  void append(const Region& region, OpViews& views) const;
  Transfer transfer(const Message& message) const;

  const RankPlan& plan_;
  Problem problem_;
  const float* sink_;
  float* dsink_;
  std::vector<TensorView> tensors_;  ///< by buffer; those of role lse are in lses_
  std::vector<LseView> lses_;
  Buffer own_;
  std::int64_t bytes_ = 0;
};

}  // namespace longca
