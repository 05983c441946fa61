#include "callers_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

namespace longca::capi {
namespace {

/// One of many, which differ by their contexts.
longca_allocator allocator_of(int& in_use) {
  return {&in_use,
          [](void* context, std::size_t bytes) {
            ++*static_cast<int*>(context);
            return std::malloc(bytes);
          },
          [](void* context, void* pointer, std::size_t /*bytes*/) {
            --*static_cast<int*>(context);
            std::free(pointer);
          }};
}

TEST(CallersMemories, OfAllocatorsThatAreIdleEnd) {
  CallersMemories memories;
  std::vector<int> in_use(100);
  for (int& context : in_use) {
    const auto memory = memories.of(allocator_of(context));
    EXPECT_EQ(memories.of(allocator_of(context)), memory) << "the same one again";
    const Buffer workspace(*memory, 100);
    EXPECT_EQ(context, 1);
  }
  EXPECT_EQ(memories.size(), 1U);
  EXPECT_EQ(in_use, std::vector<int>(100));
}

TEST(CallersMemories, StayWhileTheyAreInUse) {
  CallersMemories memories;
  std::vector<int> in_use(4);
  const auto held = memories.of(allocator_of(in_use[0]));
  std::optional<Buffer> cached(std::in_place, *memories.of(allocator_of(in_use[1])), 100);
  std::optional<Buffer> empty(std::in_place, *memories.of(allocator_of(in_use[2])), 0);
  memories.of(allocator_of(in_use[3]));
  EXPECT_EQ(memories.size(), 4U);
  cached.reset();
  empty.reset();
  int other = 0;
  memories.of(allocator_of(other));
  EXPECT_EQ(memories.size(), 3U) << "held, of no bytes, and the new one";
  EXPECT_EQ(in_use, std::vector<int>(4));
}

}  // namespace
}  // namespace longca::capi
