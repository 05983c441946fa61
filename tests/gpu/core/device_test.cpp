#include "core/device.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <set>
#include <vector>

#include "core/cuda/caching_memory.h"
#include "core/cuda/error.h"
#include "gpu/gpu_test.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<unsigned char>;

class CudaDevice : public GpuTest {
 protected:
  static Buffer upload(const Bytes& bytes) {
    Buffer buffer(gpu().memory(), static_cast<std::int64_t>(bytes.size()));
    gpu().copy(buffer.data(), bytes.data(), buffer.bytes());
    return buffer;
  }
  static Bytes download(const Buffer& buffer) {
    Bytes bytes(static_cast<std::size_t>(buffer.bytes()));
    gpu().copy(bytes.data(), buffer.data(), buffer.bytes());
    return bytes;
  }
};

TEST_F(CudaDevice, TellsWhatItIs) {
  const DeviceProperties& found = gpu().properties();
  EXPECT_FALSE(found.name.empty());
  EXPECT_GE(found.architecture, 50);
  EXPECT_GT(found.sms, 0);
  EXPECT_GT(found.cache_bytes, 0);
  EXPECT_GT(found.memory_bytes, std::int64_t{1} << 30);
  EXPECT_THAT(found.pci_bus_id, HasSubstr(":"));
  EXPECT_NE(gpu().stream(), nullptr);
  EXPECT_EQ(gpu().fault(), std::nullopt);
}

TEST_F(CudaDevice, NegatesColumnsAsTheCpuDoes) {
  constexpr std::int64_t kTokens = 3001, kHeads = 5, kDim = 7;
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    Bytes bytes(static_cast<std::size_t>(kTokens * kHeads * kDim * size_of(dtype)));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<unsigned char>(i % 11 < 4 ? 0 : i * 7);  // some zeros
    }
    const Buffer buffer = upload(bytes);
    const auto columns_of = [&](void* data) {
      const TensorView view{data, dtype, kTokens, kHeads, kDim, kHeads * kDim, kDim};
      std::vector<HeadColumn> columns;
      for (std::int64_t c = 0; c < kDim; ++c) columns.push_back({view, 0, 2, c});
      for (std::int64_t c = 0; c < kDim; ++c) columns.push_back({view, 2, 1, c});
      for (std::int64_t c = 0; c < kDim; c += 2) columns.push_back({view, 3, 2, c});
      return columns;  // more than one launch takes
    };
    gpu().negate(columns_of(buffer.as<unsigned char>()));
    Device::get(DeviceKind::cpu).negate(columns_of(bytes.data()));
    EXPECT_TRUE(download(buffer) == bytes) << to_string(dtype);
  }
}

TEST_F(CudaDevice, CopiesThereAndBack) {
  Bytes bytes(100'003);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 7);
  const Buffer first = upload(bytes);
  const Buffer second(gpu().memory(), first.bytes());
  gpu().copy(second.data(), first.data(), first.bytes());
  EXPECT_EQ(download(second), bytes);
}

TEST_F(CudaDevice, CopiesRowsBetweenStrides) {
  Bytes bytes(35);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i);
  const Buffer wide = upload(bytes);  // 5 rows of 7
  const Buffer narrow = upload(Bytes(12, 0xff));
  gpu().copy_rows(narrow.data(), 4, wide.as<unsigned char>() + 9, 7, 3, 2);
  EXPECT_EQ(download(narrow), (Bytes{9, 10, 0xff, 0xff, 16, 17, 0xff, 0xff, 23, 24, 0xff, 0xff}));
  Bytes host(6);
  gpu().copy_rows(host.data(), 2, narrow.data(), 4, 3, 2);
  EXPECT_EQ(host, (Bytes{9, 10, 16, 17, 23, 24}));
  gpu().copy_rows(wide.data(), 7, host.data(), 2, 3, 2);
  EXPECT_EQ(download(wide)[14], 23);
  gpu().copy_rows(wide.data(), 7, host.data(), 2, 0, 2);
}

TEST_F(CudaDevice, FillsEveryByteAndNoOther) {
  const Buffer buffer = upload(Bytes(1001, 1));
  gpu().fill(buffer.as<unsigned char>() + 1, 0xab, 999);
  Bytes expected(1001, 0xab);
  expected.front() = expected.back() = 1;
  EXPECT_EQ(download(buffer), expected);
}

TEST_F(CudaDevice, TheHashSeesEveryByteAndThePlaceOfEach) {
  Bytes bytes(1003, 5);  // no multiple of a word
  std::set<std::uint64_t> hashes{gpu().hash(1, upload(bytes).data(), 1003)};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = 6;
    hashes.insert(gpu().hash(1, upload(bytes).data(), 1003));
    bytes[i] = 5;
  }
  EXPECT_EQ(hashes.size(), 1004U);
  const Buffer same = upload(bytes);
  EXPECT_TRUE(hashes.contains(gpu().hash(1, same.data(), 1003)));
  EXPECT_FALSE(hashes.contains(gpu().hash(2, same.data(), 1003)));
  EXPECT_FALSE(hashes.contains(gpu().hash(1, same.data(), 1002)));
  EXPECT_EQ(gpu().hash(9, nullptr, 0), gpu().hash(9, nullptr, 0));
}

TEST_F(CudaDevice, TheHashOfMuchMemoryRepeatsAndSeesItsEnd) {
  const std::int64_t size = (std::int64_t{1} << 28) + 5;
  const Buffer buffer(gpu().memory(), size);
  gpu().fill(buffer.data(), 3, size);
  const std::uint64_t hash = gpu().hash(0, buffer.data(), size);
  EXPECT_EQ(gpu().hash(0, buffer.data(), size), hash);
  gpu().fill(buffer.as<unsigned char>() + size - 1, 4, 1);
  EXPECT_NE(gpu().hash(0, buffer.data(), size), hash);
}

TEST_F(CudaDevice, CountsWhatIsHeldAndTheMost) {
  MemoryTracker& memory = gpu().memory();
  const std::int64_t before = memory.bytes_in_use();
  memory.reset_peak();
  {
    const Buffer a(memory, 1000);
    const Buffer b(memory, 5'000'000);
    EXPECT_EQ(memory.bytes_in_use(), before + 5'001'000);
  }
  EXPECT_EQ(memory.bytes_in_use(), before);
  EXPECT_EQ(memory.peak_bytes(), before + 5'001'000);
}

TEST_F(CudaDevice, HandsOutABlockAgainWithoutTheDriver) {
  CachingCudaMemory memory;
  void* first = memory.allocate(3'000'000);
  memory.deallocate(first, 3'000'000);
  EXPECT_EQ(memory.cached_bytes(), 4 << 20);
  void* second = memory.allocate(4'000'000);  // of the same 2 MiB steps
  EXPECT_EQ(second, first);
  EXPECT_EQ(memory.cached_bytes(), 0);
  void* small = memory.allocate(100);
  EXPECT_NE(small, first);
  memory.deallocate(small, 100);
  memory.deallocate(second, 4'000'000);
  void* lists = memory.allocate(150'000);
  memory.deallocate(lists, 150'000);
  EXPECT_EQ(memory.allocate(160'000), lists);  // of the same 16 KiB step
  memory.deallocate(lists, 160'000);
  memory.release_cache();
  EXPECT_EQ(memory.cached_bytes(), 0);
  EXPECT_EQ(memory.bytes_in_use(), 0);
}

TEST_F(CudaDevice, WhatTheCacheKeepsIsNotUsed) {
  const std::int64_t size = std::int64_t{1} << 30;
  gpu().memory().release_cache();
  const std::int64_t before = gpu().used_bytes();
  {
    const Buffer buffer(gpu().memory(), size);
    EXPECT_EQ(gpu().used_bytes() - before, size);
  }
  EXPECT_EQ(gpu().used_bytes(), before);
  EXPECT_EQ(gpu().memory().cached_bytes(), size);
  void* past_the_tracker = nullptr;
  LONGCA_CUDA(cudaMalloc(&past_the_tracker, std::size_t{1} << 28));
  EXPECT_EQ(gpu().used_bytes() - before, std::int64_t{1} << 28);
  LONGCA_CUDA(cudaFree(past_the_tracker));
  gpu().memory().release_cache();
}

TEST_F(CudaDevice, RefusesMoreThanThereIsAndGoesOn) {
  MemoryTracker& memory = gpu().memory();
  const std::int64_t before = memory.bytes_in_use();
  EXPECT_THROW(Buffer(memory, gpu().properties().memory_bytes + 1), OutOfMemory);
  EXPECT_EQ(memory.bytes_in_use(), before);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(gpu().fault(), std::nullopt);
  EXPECT_EQ(download(upload(Bytes(10, 1))), Bytes(10, 1));
}

TEST_F(CudaDevice, ReturnsItsCacheBeforeItRefuses) {
  const std::int64_t large = gpu().available_bytes() / 10 * 6;
  { const Buffer buffer(gpu().memory(), large); }
  EXPECT_GE(gpu().memory().cached_bytes(), large);
  EXPECT_NO_THROW(Buffer(gpu().memory(), large + (std::int64_t{64} << 20)));
  gpu().memory().release_cache();
}

TEST_F(CudaDevice, TheLimitHoldsThereToo) {
  MemoryTracker& memory = gpu().memory();
  memory.set_limit(memory.bytes_in_use() + 1000);
  EXPECT_THROW(Buffer(memory, 1001), OutOfMemory);
  EXPECT_NO_THROW(Buffer(memory, 1000));
  memory.set_limit(0);
}

TEST_F(CudaDevice, ErrorsSayWhereAndWhat) {
  try {
    LONGCA_CUDA(cudaSetDevice(-1));
    FAIL() << "device -1 was accepted";
  } catch (const CudaError& error) {
    EXPECT_EQ(error.code(), cudaErrorInvalidDevice);
    EXPECT_THAT(error.what(), HasSubstr("device_test.cpp:"));
    EXPECT_THAT(error.what(), HasSubstr("cudaSetDevice(-1) failed: "));
    EXPECT_THAT(error.what(), HasSubstr("cudaErrorInvalidDevice"));
  }
  EXPECT_EQ(gpu().fault(), std::nullopt) << "an error of one call is none of the device";
}

}  // namespace
}  // namespace longca::testing
