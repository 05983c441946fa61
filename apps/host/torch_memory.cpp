// The functions of PyTorch's pluggable allocator: the device's tracker counts what its operators
// allocate, like everything else.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_set>

#include "core/device.h"
#include "core/error.h"
#include "core/memory.h"
#ifdef LONGCA_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace longca {
namespace {

/// Memory offered for results. PyTorch's operators allocate the tensors that they return, and a
/// copy from there to the output of the call would be timed with the kernel. So the next
/// allocations of given sizes are served from given memory, which its owner keeps.
class OfferedMemory {
 public:
  void offer(void* memory, std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    offered_.emplace(bytes, memory);
  }
  void withdraw() {
    const std::lock_guard lock(mutex_);
    offered_.clear();
  }
  /// Null if nothing of that size is offered.
  void* take(std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = offered_.find(bytes);
    // Memory of an earlier result is not lent again: PyTorch would free it twice.
    if (found == offered_.end() || lent_.contains(found->second)) return nullptr;
    void* memory = found->second;
    offered_.erase(found);
    lent_.insert(memory);
    return memory;
  }
  /// False if `memory` was not lent.
  bool give_back(void* memory) {
    const std::lock_guard lock(mutex_);
    return lent_.erase(memory) > 0;
  }

 private:
  std::mutex mutex_;
  std::multimap<std::int64_t, void*> offered_;
  std::unordered_set<void*> lent_;
};

OfferedMemory& places() {
  static OfferedMemory all;
  return all;
}

void wait_for_stream([[maybe_unused]] Stream stream) {
#ifdef LONGCA_WITH_CUDA
  cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
#endif
}

struct LastRefusal {
  std::mutex mutex;
  std::string sentence;
};

LastRefusal& last_refusal() {
  static LastRefusal last;
  return last;
}

}  // namespace
}  // namespace longca

extern "C" {

using namespace longca;

/// Throws OutOfMemory, which PyTorch turns into a Python exception; it would use a null pointer.
void* longca_torch_allocate(std::int64_t bytes, int /*device*/, void* /*stream*/) {
  if (bytes == 0) return nullptr;
  if (void* memory = places().take(bytes)) return memory;
  try {
    return Device::get(DeviceKind::cuda).memory().allocate(bytes);
  } catch (const OutOfMemory& error) {
    const std::lock_guard lock(last_refusal().mutex);
    last_refusal().sentence = error.what();
    throw;
  }
}

/// Waits for another stream (PyTorch's default one, while it compiles): the tracker reuses freed
/// memory for work queued later on our stream.
void longca_torch_free(void* memory, std::int64_t bytes, int /*device*/, void* stream) {
  if (memory == nullptr || places().give_back(memory)) return;
  Device& device = Device::get(DeviceKind::cuda);
  if (stream != device.stream()) wait_for_stream(stream);
  device.memory().deallocate(memory, bytes);
}

/// Offers memory of the caller for the next allocation of that many bytes; withdraw ends all
/// offers.
void longca_torch_offer(void* memory, std::int64_t bytes) {
  places().offer(memory, bytes);
}
void longca_torch_withdraw() {
  places().withdraw();
}

/// Forgets memory that compiling a kernel took, which is not the kernel's own.
void longca_torch_reset_peak() {
  Device::get(DeviceKind::cuda).memory().reset_peak();
}

/// Copies why an allocation was refused since the last call into `sentence`; empty if none was.
void longca_torch_take_refusal(char* sentence, std::int64_t capacity) {
  const std::lock_guard lock(last_refusal().mutex);
  const std::size_t length =
      last_refusal().sentence.copy(sentence, static_cast<std::size_t>(capacity) - 1);
  sentence[length] = '\0';
  last_refusal().sentence.clear();
}

}  // extern "C"
