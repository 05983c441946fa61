#include "core/device.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>

#include "core/cuda/cuda_device.h"
#include "core/error.h"
#include "core/parse.h"

namespace longca {
namespace {

std::string processor_model() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "CPU";
}

/// 64-bit words in four independent lanes, so that it runs at the speed of memory. A lane is
/// rotated before it is multiplied: a product carries upwards only, and changes of the top bits of
/// two words, such as the signs of two numbers, would cancel.
std::uint64_t hash_bytes(std::uint64_t seed, const void* data, std::int64_t bytes) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15ULL;  // odd, of all bits
  const auto mix = [](std::uint64_t x) { return std::rotl(x, 29) * kFactor; };
  std::array<std::uint64_t, 4> lanes{~seed, seed + 1, seed + 2, seed + 3};
  const auto* p = static_cast<const unsigned char*>(data);
  std::array<std::uint64_t, 4> words{};
  for (; bytes > 0; bytes -= 32, p += 32) {
    words = {};
    std::memcpy(words.data(), p, static_cast<std::size_t>(bytes < 32 ? bytes : 32));
    for (std::size_t i = 0; i < 4; ++i) lanes[i] = mix(lanes[i] ^ words[i]);
  }
  std::uint64_t hash = seed;
  for (const std::uint64_t lane : lanes) hash = mix(mix(hash ^ lane));
  return hash ^ (hash >> 32);
}

/// Changes the sign of every element that is not 0. T: unsigned, of the element's size.
template <typename T>
void negate_column(const HeadColumn& x) {
  constexpr T kSign = T{1} << (8 * sizeof(T) - 1);
  for (std::int64_t token = 0; token < x.tensor.tokens; ++token) {
    T* element = x.tensor.row<T>(token, x.first_head) + x.column;
    for (std::int64_t head = 0; head < x.heads; ++head, element += x.tensor.head_stride) {
      if ((*element & ~kSign) != 0) *element ^= kSign;
    }
  }
}

class CpuDevice : public Device {
 public:
  CpuDevice() {
    properties_.name = processor_model();
    properties_.sms = static_cast<int>(std::thread::hardware_concurrency());
    properties_.cache_bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
    properties_.memory_bytes =
        std::int64_t{::sysconf(_SC_PHYS_PAGES)} * std::int64_t{::sysconf(_SC_PAGESIZE)};
  }

  const DeviceProperties& properties() const override { return properties_; }
  MemoryTracker& memory() override { return MemoryTracker::host(); }
  std::int64_t available_bytes() override {
    return std::int64_t{::sysconf(_SC_AVPHYS_PAGES)} * std::int64_t{::sysconf(_SC_PAGESIZE)};
  }
  std::int64_t used_bytes() override { return 0; }
  Stream stream() override { return nullptr; }
  void copy(void* to, const void* from, std::int64_t bytes) override {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void copy_rows(void* to, std::int64_t to_stride, const void* from, std::int64_t from_stride,
                 std::int64_t rows, std::int64_t row_bytes) override {
    for (std::int64_t row = 0; row < rows; ++row) {
      std::memcpy(static_cast<std::byte*>(to) + row * to_stride,
                  static_cast<const std::byte*>(from) + row * from_stride,
                  static_cast<std::size_t>(row_bytes));
    }
  }
  void fill(void* data, unsigned char value, std::int64_t bytes) override {
    std::memset(data, value, static_cast<std::size_t>(bytes));
  }
  void negate(std::span<const HeadColumn> columns) override {
    for (const HeadColumn& column : columns) {
      size_of(column.tensor.dtype) == 4 ? negate_column<std::uint32_t>(column)
                                        : negate_column<std::uint16_t>(column);
    }
  }
  std::uint64_t hash(std::uint64_t seed, const void* data, std::int64_t bytes) override {
    return hash_bytes(seed, data, bytes);
  }
  void synchronize() override {}
  std::optional<std::string> fault() noexcept override { return std::nullopt; }

 private:
  DeviceProperties properties_;
};

struct CudaSingleton {
  std::unique_ptr<Device> device;
  Support support;
};

CudaSingleton& cuda() {
  static CudaSingleton singleton = [] {
    CudaSingleton made;
    made.device = make_cuda_device(made.support);
    return made;
  }();
  return singleton;
}

}  // namespace

#ifndef LONGCA_WITH_CUDA
std::unique_ptr<Device> make_cuda_device(Support& support) {
  support = Support::unavailable(
      "this build is without CUDA: install the CUDA toolkit (nvcc, 12.4 or later) and build again");
  return nullptr;
}

int count_cuda_devices() {
  return 0;
}
#endif

std::string_view to_string(DeviceKind device) {
  return device == DeviceKind::cpu ? "cpu" : "cuda";
}

const Support& Device::available(DeviceKind kind) {
  static const Support yes;
  return kind == DeviceKind::cpu ? yes : cuda().support;
}

Device& Device::get(DeviceKind kind) {
  static CpuDevice cpu;
  if (kind == DeviceKind::cpu) return cpu;
  if (!cuda().support.ok()) throw InputError(cuda().support.reason);
  return *cuda().device;
}

std::int64_t wanted_cuda_index() {
  const char* text = std::getenv("LONGCA_DEVICE");
  return text == nullptr || *text == '\0' ? 0 : parse_count("LONGCA_DEVICE", text);
}

}  // namespace longca
