#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/memory.h"
#include "core/status.h"
#include "core/tensor.h"

namespace longca {

enum class DeviceKind : std::uint8_t { cpu, cuda };
std::string_view to_string(DeviceKind device);

/// A cudaStream_t on a GPU. Null on the CPU, where every call is synchronous.
using Stream = void*;

/// Properties that are queried without creating a context on the device.
struct DeviceProperties {
  std::string name;               ///< "NVIDIA H200"; the CPU's model name
  int architecture = 0;           ///< compute capability, 90 for 9.0; 0 on the CPU
  int sms = 0;                    ///< number of SMs; hardware threads on the CPU
  std::int64_t cache_bytes = 0;   ///< last-level cache (L2 on a GPU)
  std::int64_t memory_bytes = 0;  ///< total, used or not
  std::string pci_bus_id;         ///< "00000000:1B:00.0"; empty on the CPU
};

/// One column of adjacent heads of a tensor in device memory.
struct HeadColumn {
  TensorView tensor;
  std::int64_t first_head = 0;
  std::int64_t heads = 0;
  std::int64_t column = 0;
};

/// The device that this process uses, one per kind: its memory, its one stream, and the few
/// operations that inputs, outputs and checks need. All work of a cell runs on `stream()`.
class Device {
 public:
  virtual ~Device() = default;

  /// ok, or `unavailable` with the reason: no GPU, a driver too old, a build without CUDA. Never
  /// throws; determined once per process.
  static const Support& available(DeviceKind kind);
  /// Throws InputError with the reason of `available` if it is not ok. A GPU's context is created
  /// on the first call of anything but `properties()`; that may throw.
  static Device& get(DeviceKind kind);

  virtual const DeviceProperties& properties() const = 0;
  /// Allocates every tensor and workspace on this device.
  virtual MemoryTracker& memory() = 0;
  /// Bytes that can still be allocated: free on the device, or kept in the tracker's cache.
  virtual std::int64_t available_bytes() = 0;
  /// Bytes in use on the device by all processes, without the tracker's cache: shows allocations
  /// that bypass the tracker. 0 on the CPU.
  virtual std::int64_t used_bytes() = 0;
  virtual Stream stream() = 0;

  /// Copies between any of host and device memory, in order on `stream()`; synchronous.
  virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;
  /// As `copy`, for `rows` rows of `row_bytes` each. Strides are in bytes, at least row_bytes.
  virtual void copy_rows(void* to, std::int64_t to_stride, const void* from,
                         std::int64_t from_stride, std::int64_t rows, std::int64_t row_bytes) = 0;
  /// Sets every byte to `value`, in order on `stream()`; asynchronous on a GPU.
  virtual void fill(void* data, unsigned char value, std::int64_t bytes) = 0;
  /// Changes the sign of every element of the columns but zeros, which stay as they are; in order
  /// on `stream()`, asynchronous on a GPU. No two columns may share elements.
  virtual void negate(std::span<const HeadColumn> columns) = 0;
  /// A 64-bit hash of `bytes` of device memory, in order on `stream()`; synchronous.
  virtual std::uint64_t hash(std::uint64_t seed, const void* data, std::int64_t bytes) = 0;
  /// Waits for `stream()`. Throws for an error of any earlier asynchronous work.
  virtual void synchronize() = 0;
  /// The name of a sticky error ("cudaErrorIllegalAddress"), after which this process cannot use
  /// the device. Does not wait for the stream.
  virtual std::optional<std::string> fault() noexcept = 0;

  /// Makes this the calling thread's device, as CUDA has one for each thread; returns what `leave`
  /// needs to go back to the one before. See DeviceScope.
  virtual int enter() { return 0; }
  virtual void leave(int /*before*/) noexcept {}
};

/// Work of this thread is on the device as long as it lives, whatever thread that is: an
/// application has its own idea of a thread's device.
class DeviceScope {
 public:
  explicit DeviceScope(DeviceKind kind) : device_(Device::get(kind)), before_(device_.enter()) {}
  ~DeviceScope() { device_.leave(before_); }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Device& device_;
  int before_;
};

/// LONGCA_DEVICE, the number of the GPU that this process uses; 0 if unset or empty. Throws
/// InputError for what is no number.
std::int64_t wanted_cuda_index();

}  // namespace longca
