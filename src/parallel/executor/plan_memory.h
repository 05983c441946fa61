#pragma once

#include <cstdint>
#include <vector>

#include "parallel/executor/executor.h"

namespace longca {

/// The buffers of one rank's plan as memory. Those that messages start or land in lie in memory of
/// the communicator, asked for in one call so that ranks with different plans make the same ones;
/// the others come from the device's tracker. What one pass alone needs shares memory with what the
/// other pass alone needs.
class PlanMemory {
 public:
  /// `tensors` are bound to the external buffers. Collective, as Communicator::allocate is.
  PlanMemory(const RankPlan& plan, const Problem& problem, const RankTensors& tensors,
             Communicator& communicator);

  TensorView tensor(const Region& region) const;
  LseView lse(const Region& region) const;
  OpViews views(const Op& op) const;
  /// The messages as transports see them; those without bytes are left out.
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
  std::vector<TensorView> tensors_;  ///< of the buffers; those of role lse stand in lses_
  std::vector<LseView> lses_;
  Buffer own_;
  std::int64_t bytes_ = 0;
};

}  // namespace longca
