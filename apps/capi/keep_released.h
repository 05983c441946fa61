#pragma once

#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace longca::capi {

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
