#pragma once

#include <cstddef>
#include <cstdint>

#include "core/memory.h"

namespace longca {

/// The memory that a plan's calls work in and that holds nothing between them: lent by whoever runs
/// several plans one after the other, or the plan's own from its first call on.
class PlanScratch {
 public:
  PlanScratch() = default;
  PlanScratch(MemoryTracker& memory, std::int64_t bytes) : memory_(&memory), bytes_(bytes) {}

  std::int64_t bytes() const { return bytes_; }
  /// What of it counts as the plan's workspace.
  std::int64_t own_bytes() const { return lent_ != nullptr ? 0 : bytes_; }
  void lend(std::byte* memory) { lent_ = memory; }
  std::byte* data() {
    if (lent_ != nullptr) return lent_;
    if (own_.bytes() < bytes_) own_ = Buffer(*memory_, bytes_);
    return own_.as<std::byte>();
  }

 private:
  MemoryTracker* memory_ = nullptr;
  std::int64_t bytes_ = 0;
  std::byte* lent_ = nullptr;
  Buffer own_;
};

/// The side of a Plan whose scratch can be shared: a second base class of those that have one.
class HasScratch {
 public:
  virtual ~HasScratch() = default;
  /// To be lent before the first call, if at all; the lender's memory outlives the calls.
  virtual PlanScratch& scratch() = 0;
};

}  // namespace longca
