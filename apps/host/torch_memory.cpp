// The two functions behind PyTorch's pluggable allocator: what its operators take is counted by the
// tracker of the device, as everything else is.

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

/// Results that have a place already. PyTorch's operators return tensors that they allocate; a copy
/// from there to the output of the call would be timed, and is no work of the kernel's. So the next
/// allocations of given sizes are served from given memory, which stays its owner's.
class Places {
 public:
  void offer(void* memory, std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    offered_.emplace(bytes, memory);
  }
  void withdraw() {
    const std::lock_guard lock(mutex_);
    offered_.clear();
  }
  /// Null if no place of that size is offered.
  void* take(std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = offered_.find(bytes);
    // What an earlier result still lies in is not lent twice: PyTorch would free it twice.
    if (found == offered_.end() || lent_.contains(found->second)) return nullptr;
    void* memory = found->second;
    offered_.erase(found);
    lent_.insert(memory);
    return memory;
  }
  /// False if `memory` is none of these.
  bool give_back(void* memory) {
    const std::lock_guard lock(mutex_);
    return lent_.erase(memory) > 0;
  }

 private:
  std::mutex mutex_;
  std::multimap<std::int64_t, void*> offered_;
  std::unordered_set<void*> lent_;
};

Places& places() {
  static Places all;
  return all;
}

void wait_for([[maybe_unused]] Stream stream) {
#ifdef LONGCA_WITH_CUDA
  cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
#endif
}

struct Refusal {
  std::mutex mutex;
  std::string sentence;
};

Refusal& refusal() {
  static Refusal last;
  return last;
}

}  // namespace
}  // namespace longca

extern "C" {

using namespace longca;

/// Throws OutOfMemory, which PyTorch hands on as a Python exception (it would use a null pointer).
void* longca_torch_allocate(std::int64_t bytes, int /*device*/, void* /*stream*/) {
  if (bytes == 0) return nullptr;
  if (void* memory = places().take(bytes)) return memory;
  try {
    return Device::get(DeviceKind::cuda).memory().allocate(bytes);
  } catch (const OutOfMemory& error) {
    const std::lock_guard lock(refusal().mutex);
    refusal().sentence = error.what();
    throw;
  }
}

/// The tracker hands freed memory out again to work queued later on our stream: what another stream
/// (PyTorch's default one, while it compiles) still reads must be waited for.
void longca_torch_free(void* memory, std::int64_t bytes, int /*device*/, void* stream) {
  if (memory == nullptr || places().give_back(memory)) return;
  Device& device = Device::get(DeviceKind::cuda);
  if (stream != device.stream()) wait_for(stream);
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

/// For what was taken to compile a kernel, which is none of the kernel's own memory.
void longca_torch_reset_peak() {
  Device::get(DeviceKind::cuda).memory().reset_peak();
}

/// Copies why an allocation was refused since the last call into `sentence`; empty if none was.
void longca_torch_take_refusal(char* sentence, std::int64_t capacity) {
  const std::lock_guard lock(refusal().mutex);
  const std::size_t length =
      refusal().sentence.copy(sentence, static_cast<std::size_t>(capacity) - 1);
  sentence[length] = '\0';
  refusal().sentence.clear();
}

}  // extern "C"
