#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/memory.h"
#include "core/status.h"

namespace longca {

enum class DeviceKind : std::uint8_t { cpu, cuda };
std::string_view to_string(DeviceKind device);

/// An execution queue of a device (a cudaStream_t on a GPU). On the CPU it is null and calls return
/// when their work is done.
using Stream = void*;

/// What is known of a device without using it.
struct DeviceProperties {
  std::string name;               ///< "NVIDIA H200"; the processor's model on the CPU
  int architecture = 0;           ///< compute capability, 90 for 9.0; 0 on the CPU
  int sms = 0;                    ///< SMs; hardware threads on the CPU
  std::int64_t cache_bytes = 0;   ///< last-level cache (L2 on a GPU)
  std::int64_t memory_bytes = 0;  ///< of the whole device
  std::string pci_bus_id;         ///< "00000000:1B:00.0"; empty on the CPU
};

/// The device that this process works on: one per kind. Its memory, its one queue, and the few
/// operations that inputs, outputs and checks need. Everything of a cell runs on `stream()`.
class Device {
 public:
  virtual ~Device() = default;

  /// Yes, or `unavailable` and why: no GPU, a driver too old, a build without CUDA. Never throws;
  /// found out once per process.
  static const Support& available(DeviceKind kind);
  /// Throws InputError with the sentence of `available` if it is not. A GPU is taken (its context
  /// made) when anything but its properties is first asked for; that may throw.
  static Device& get(DeviceKind kind);

  virtual const DeviceProperties& properties() const = 0;
  /// The tracker under every tensor and workspace on this device.
  virtual MemoryTracker& memory() = 0;
  /// Bytes that an allocation may still take: free on the device, or kept by the tracker's cache.
  virtual std::int64_t available_bytes() = 0;
  /// Bytes of the device that are taken, by whomever, without those that the tracker's cache keeps:
  /// memory that goes past the tracker shows here. 0 on the CPU.
  virtual std::int64_t used_bytes() = 0;
  virtual Stream stream() = 0;

  /// Copies between host and device memory or inside either, after what is queued on `stream()`;
  /// returns when done.
  virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;
  /// As `copy`, of `rows` rows of `row_bytes`, which begin `to_stride` and `from_stride` bytes
  /// apart (no fewer than row_bytes).
  virtual void copy_rows(void* to, std::int64_t to_stride, const void* from,
                         std::int64_t from_stride, std::int64_t rows, std::int64_t row_bytes) = 0;
  /// Sets every byte, queued on `stream()`.
  virtual void fill(void* data, unsigned char value, std::int64_t bytes) = 0;
  /// A 64-bit hash of `bytes` of device memory, after what is queued on `stream()`.
  virtual std::uint64_t hash(std::uint64_t seed, const void* data, std::int64_t bytes) = 0;
  /// Waits until the queue is empty. Reports an error of any earlier asynchronous work.
  virtual void synchronize() = 0;
  /// The name of the error that has left the device unusable for this process
  /// ("cudaErrorIllegalAddress"), if there is one. Does not wait for the queue.
  virtual std::optional<std::string> fault() noexcept = 0;
};

}  // namespace longca
