#include "attention/kernels/common/block_map.h"

#include <gtest/gtest.h>

#include <vector>

#include "gpu/gpu_test.h"
#include "mask/generators.h"

namespace longca::testing {
namespace {

class CudaBlockMap : public GpuTest {
 protected:
  template <typename T>
  static std::vector<T> downloaded(const void* data, std::int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    if (count > 0) gpu().copy(values.data(), data, count * static_cast<std::int64_t>(sizeof(T)));
    return values;
  }
  static Mask drawn(std::int64_t tokens, std::int64_t block, double density, int heads,
                    const char* name) {
    MaskSpec spec;
    spec.name = name;
    spec.tokens = tokens;
    spec.block = block;
    spec.density = density;
    spec.heads_q = spec.heads_k = heads;
    return generate_mask(spec).mask;
  }
  /// The lists with queries and keys exchanged, by asking every row for every column.
  static BlockLists transposed(const BlockLists& lists) {
    BlockLists out{lists.k_bounds, lists.q_bounds, lists.heads, {0}, {}};
    for (int head = 0; head < lists.heads; ++head) {
      for (std::int32_t j = 0; j < static_cast<std::int32_t>(lists.k_blocks()); ++j) {
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(lists.q_blocks()); ++i) {
          const auto kept = lists.kept(head, i);
          if (std::find(kept.begin(), kept.end(), j) != kept.end()) out.indices.push_back(i);
        }
        out.offsets.push_back(std::ssize(out.indices));
      }
    }
    return out;
  }
  static void expect_equal(const DeviceBlockLists& device, const BlockLists& lists) {
    EXPECT_EQ(downloaded<std::int64_t>(device.offsets(), std::ssize(lists.offsets)), lists.offsets);
    EXPECT_EQ(downloaded<std::int32_t>(device.indices(), std::ssize(lists.indices)), lists.indices);
  }
};

struct Shape {
  std::int64_t tokens, block;
  double density;
  int heads;
};

TEST_F(CudaBlockMap, ListsEqualThoseOfTheHost) {
  // One block; fewer than a word; a word and one more; more rows than one round of the scan.
  const Shape shapes[] = {{1, 64, 0.5, 1},    {64, 64, 1, 2},     {1000, 64, 0.3, 3},
                          {2112, 64, 0.5, 2}, {4100, 32, 0.1, 5}, {3000, 3, 0.9, 2},
                          {33000, 7, 0.01, 2}};
  for (const Shape& shape : shapes) {
    for (const char* name : {"block_sparse", "block_sparse_variable"}) {
      SCOPED_TRACE(::testing::Message() << name << " " << shape.tokens << " by " << shape.block);
      const Mask mask = drawn(shape.tokens, shape.block, shape.density, shape.heads, name);
      const BlockLists& lists = *mask.blocks();
      const BlockMap& map = BlockMap::of(mask);
      EXPECT_EQ(&map, &BlockMap::of(Mask(mask)));
      EXPECT_EQ(map.kept(), std::ssize(lists.indices));
      const std::vector<std::int64_t> q_bounds = [&] {
        const auto narrow = downloaded<std::int32_t>(map.q_bounds(), std::ssize(lists.q_bounds));
        return std::vector<std::int64_t>(narrow.begin(), narrow.end());
      }();
      EXPECT_EQ(q_bounds, lists.q_bounds);
      expect_equal(kept_lists(map, gpu().stream()), lists);
      if (lists.q_blocks() > 2000) continue;  // the host's way is slow
      expect_equal(transposed_lists(map, gpu().stream()), transposed(lists));
    }
  }
}

TEST_F(CudaBlockMap, CountsKeptBlocksOfUnevenRows) {
  BlockLists lists{{0, 1, 2, 3, 4}, {0, 1, 2, 3}, 1, {0, 0, 3, 3, 4}, {0, 1, 2, 1}};
  const Mask mask = Mask::from_blocks(4, 3, {{0, 4, 0, 3, MaskSliceType::full}}, lists);
  const BlockMap& map = BlockMap::of(mask);
  const Buffer counts(gpu().memory(), 4 * 4);
  count_kept(map.bits(), counts.as<std::int32_t>(), gpu().stream());
  EXPECT_EQ(downloaded<std::int32_t>(counts.data(), 4), (std::vector<std::int32_t>{0, 3, 0, 1}));
  expect_equal(kept_lists(map, gpu().stream()), lists);
  expect_equal(transposed_lists(map, gpu().stream()), transposed(lists));
}

TEST_F(CudaBlockMap, LivesInTheTrackersMemoryAsLongAsItsMask) {
  const std::int64_t before = gpu().memory().bytes_in_use();
  {
    const Mask mask = drawn(1000, 64, 0.5, 2, "block_sparse");
    BlockMap::of(mask);
    EXPECT_EQ(gpu().memory().bytes_in_use() - before, 2 * 16 * 4 + 2 * 17 * 4);
  }
  EXPECT_EQ(gpu().memory().bytes_in_use(), before);
}

}  // namespace
}  // namespace longca::testing
