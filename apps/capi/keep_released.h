#pragma once

#include <exception>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "parallel/executor/lanes.h"

namespace longca::capi {

/// Whether the device is done with all calls whose end `mark` is; null: a mark of the CPU's. Work
/// captured in a CUDA graph has no end.
inline bool has_ended(StreamMark* mark) noexcept {
  if (mark == nullptr) return true;
  if (mark->is_captured()) return false;
  try {
    return mark->reached();
  } catch (const std::exception&) {
    return true;  // the device is lost, and all work on it has ended
  }
}

/// Marks the end of a call in its stream when it goes out of scope, also where a part of the call
/// could not be queued: the device may still do the rest.
class EndOfCall {
 public:
  EndOfCall(StreamMark* mark, Stream stream) : mark_(mark), stream_(stream) {}
  ~EndOfCall() {
    try {
      if (mark_ != nullptr) mark_->record(stream_);
    } catch (const std::exception&) {  // the device is lost: the next call says so
    }
  }
  EndOfCall(const EndOfCall&) = delete;
  EndOfCall& operator=(const EndOfCall&) = delete;

 private:
  StreamMark* mark_;
  Stream stream_;
};

/// Keeps a plan that the caller has released, since the device may still do calls of it. Without
/// memory for its place in the list its own memory is lost, and nothing else.
template <typename T>
void keep_released(std::unique_ptr<T> plan, std::vector<std::unique_ptr<T>>& released) noexcept {
  try {
    released.emplace_back(nullptr);
    released.back() = std::move(plan);
  } catch (const std::bad_alloc&) {
    static_cast<void>(plan.release());
  }
}

}  // namespace longca::capi
