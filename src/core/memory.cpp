#include "core/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "core/lent_memory.h"
#include "core/rounding.h"

namespace longca {
namespace {

constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kHugePage = std::int64_t{2} << 20;

std::int64_t alignment_of(std::int64_t bytes) {
  return bytes >= 2 * kHugePage ? kHugePage : kAlignment;
}

std::int64_t padded(std::int64_t bytes) {
  const std::int64_t alignment = alignment_of(bytes);
  return std::max(alignment, round_up(bytes, alignment));
}

}  // namespace

MemoryTracker& MemoryTracker::host() {
  static MemoryTracker tracker;
  MemoryTracker* lent = LentMemory::of(DeviceKind::cpu);
  return lent != nullptr ? *lent : tracker;
}

void* MemoryTracker::allocate(std::int64_t bytes) {
  const std::int64_t now = in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const std::int64_t limit = limit_.load(std::memory_order_relaxed);
  void* pointer = nullptr;
  if (limit == 0 || now <= limit) pointer = obtain(bytes);
  if (pointer == nullptr) {
    in_use_.fetch_sub(bytes, std::memory_order_relaxed);
    throw OutOfMemory(refusal(bytes, now - bytes));
  }
  std::int64_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return pointer;
}

std::string MemoryTracker::refusal(std::int64_t bytes, std::int64_t in_use) const {
  const std::int64_t limit = limit_.load(std::memory_order_relaxed);
  return fmt::format("an allocation of {} bytes beside {} in use passes the limit of {}", bytes,
                     in_use, limit == 0 ? "this machine" : fmt::format("{} bytes", limit));
}

void MemoryTracker::deallocate(void* pointer, std::int64_t bytes) noexcept {
  give_back(pointer, bytes);
  in_use_.fetch_sub(bytes, std::memory_order_relaxed);
}

void* MemoryTracker::obtain(std::int64_t bytes) {
  void* pointer = std::aligned_alloc(static_cast<std::size_t>(alignment_of(bytes)),
                                     static_cast<std::size_t>(padded(bytes)));
  if (pointer != nullptr && bytes >= 2 * kHugePage) {
    madvise(pointer, static_cast<std::size_t>(padded(bytes)), MADV_HUGEPAGE);
  }
  return pointer;
}

void MemoryTracker::give_back(void* pointer, std::int64_t /*bytes*/) noexcept {
  std::free(pointer);
}

}  // namespace longca
