#include "core/cuda/cuda_device.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <mutex>

#include "core/cuda/caching_memory.h"
#include "core/cuda/driver_function.h"
#include "core/cuda/error.h"
#include "core/error.h"
#include "core/lent_memory.h"

namespace longca {
namespace {

/// Whether this process has used the device.
bool has_context(int device) noexcept {
  static const auto get_state = reinterpret_cast<decltype(&cuDevicePrimaryCtxGetState)>(
      find_driver_function("cuDevicePrimaryCtxGetState"));
  unsigned flags = 0;
  int active = 0;
  return get_state != nullptr && get_state(device, &flags, &active) == CUDA_SUCCESS && active != 0;
}

/// Queries properties at once, but creates the context, which takes time and half a GiB of device
/// memory, on first use only: the parent process that lists devices or starts workers needs none.
class CudaDevice : public Device {
 public:
  explicit CudaDevice(int index) : index_(index) {
    cudaDeviceProp found{};
    LONGCA_CUDA(cudaGetDeviceProperties(&found, index));
    properties_.name = found.name;
    properties_.architecture = found.major * 10 + found.minor;
    properties_.sms = found.multiProcessorCount;
    properties_.cache_bytes = found.l2CacheSize;
    properties_.memory_bytes = static_cast<std::int64_t>(found.totalGlobalMem);
    std::array<char, 32> bus_id{};
    LONGCA_CUDA(cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), index));
    properties_.pci_bus_id = bus_id.data();
  }

  const DeviceProperties& properties() const override { return properties_; }
  MemoryTracker& memory() override {
    lazy_stream();
    MemoryTracker* lent = LentMemory::of(DeviceKind::cuda);
    return lent != nullptr ? *lent : memory_;
  }
  std::int64_t available_bytes() override {
    lazy_stream();
    return free_bytes() + memory_.cached_bytes();
  }
  std::int64_t used_bytes() override { return properties_.memory_bytes - available_bytes(); }
  Stream stream() override { return lazy_stream(); }

  void copy(void* to, const void* from, std::int64_t bytes) override {
    LONGCA_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault,
                                lazy_stream()));
    synchronize();
  }
  void copy_rows(void* to, std::int64_t to_stride, const void* from, std::int64_t from_stride,
                 std::int64_t rows, std::int64_t row_bytes) override {
    if (rows == 0 || row_bytes == 0) return;
    const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    LONGCA_CUDA(cudaMemcpy2DAsync(to, size(to_stride), from, size(from_stride), size(row_bytes),
                                  size(rows), cudaMemcpyDefault, lazy_stream()));
    synchronize();
  }
  void fill(void* data, unsigned char value, std::int64_t bytes) override {
    LONGCA_CUDA(cudaMemsetAsync(data, value, static_cast<std::size_t>(bytes), lazy_stream()));
  }
  void negate(std::span<const HeadColumn> columns) override { cuda_negate(columns, lazy_stream()); }
  std::uint64_t hash(std::uint64_t seed, const void* data, std::int64_t bytes) override {
    return cuda_hash(seed, data, bytes, lazy_stream());
  }
  void synchronize() override {
    LONGCA_CUDA(cudaStreamSynchronize(lazy_stream()));
    LONGCA_CUDA(cudaGetLastError());  // of an unchecked launch
  }
  std::optional<std::string> fault() noexcept override {
    if (stream_ == nullptr) return std::nullopt;
    cudaGetLastError();  // clears an error that is not sticky
    const cudaError_t code = cudaStreamQuery(stream_);
    if (code == cudaSuccess || code == cudaErrorNotReady) return std::nullopt;
    return cudaGetErrorName(code);
  }

  int enter() override {
    int before = index_;
    LONGCA_CUDA(cudaGetDevice(&before));
    if (before != index_) LONGCA_CUDA(cudaSetDevice(index_));
    return before;
  }
  void leave(int before) noexcept override {
    // To go to a device that nobody uses would make a context there.
    if (before != index_ && has_context(before)) cudaSetDevice(before);
  }

 private:
  /// The thread that comes first is on this device from then on, unless it is in a DeviceScope.
  cudaStream_t lazy_stream() {
    std::call_once(made_, [&] {
      LONGCA_CUDA(cudaSetDevice(index_));
      LONGCA_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    });
    return stream_;
  }
  static std::int64_t free_bytes() {
    std::size_t free = 0;
    std::size_t total = 0;
    LONGCA_CUDA(cudaMemGetInfo(&free, &total));
    return static_cast<std::int64_t>(free);
  }

  int index_;
  DeviceProperties properties_;
  CachingCudaMemory memory_;
  std::once_flag made_;
  // Never destroyed: it lives until the process ends, perhaps after a sticky error.
  cudaStream_t stream_ = nullptr;
};

int chosen_index(int count) {
  const std::int64_t index = wanted_cuda_index();
  if (index < 0 || index >= count) {
    throw_input_error("LONGCA_DEVICE is {}, but there are {} CUDA devices, from 0 on", index,
                      count);
  }
  return static_cast<int>(index);
}

Support find_devices(int& count) {
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count > 0) return {};
  cudaGetLastError();
  if (code == cudaErrorInsufficientDriver) {
    int runtime = 0;
    int driver = 0;
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    if (driver == 0) return Support::unavailable("no CUDA device: no NVIDIA driver is loaded");
    return Support::unavailable(fmt::format(
        "the NVIDIA driver supports CUDA {}.{}, this build needs {}.{}: update the driver",
        driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10));
  }
  return Support::unavailable(fmt::format(
      "no CUDA device: {}", code == cudaSuccess ? "none is visible" : cudaGetErrorString(code)));
}

}  // namespace

int count_cuda_devices() {
  int count = 0;
  return find_devices(count).ok() ? count : 0;
}

std::unique_ptr<Device> make_cuda_device(Support& support) {
  int count = 0;
  support = find_devices(count);
  if (!support.ok()) return nullptr;
  try {
    return std::make_unique<CudaDevice>(chosen_index(count));
  } catch (const std::exception& error) {
    support = Support::unavailable(fmt::format("the CUDA device cannot be used: {}", error.what()));
    return nullptr;
  }
}

}  // namespace longca
