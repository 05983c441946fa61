// The C functions by which a Python process becomes a worker: see adapters/python/host_interface.h
// and host.py, which calls them.

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attention/adapters/python/python_kernel.h"
#include "attention/api/registry.h"
#include "bench/cell/problem.h"
#include "bench/python_host.h"
#include "bench/run/worker.h"
#include "bench/suite/case.h"
#include "core/device.h"
#include "guarded.h"

namespace {

using namespace longca;

PythonReply& reply_at(void* reply) {
  return *static_cast<PythonReply*>(reply);
}

constexpr int kDone = 0;
constexpr int kFailed = -1;

}  // namespace

extern "C" {

/// Sizes of the structures of host_interface.h, for the Python side to compare.
void longca_structure_sizes(std::int32_t* sizes) {
  constexpr std::array<std::size_t, 6> kSizes = {sizeof(LongcaProblem),  sizeof(LongcaTensor),
                                                 sizeof(LongcaLse),      sizeof(LongcaForward),
                                                 sizeof(LongcaBackward), sizeof(LongcaCallbacks)};
  for (std::size_t i = 0; i < kSizes.size(); ++i) sizes[i] = static_cast<std::int32_t>(kSizes[i]);
}

/// The sentence of last_error; valid until the next function of this thread fails.
const char* longca_host_last_error() {
  return last_error().c_str();
}

/// `code`: "unsupported", "unavailable", "oom" or "crash".
void longca_reply(void* reply, const char* code, const char* sentence) {
  reply_at(reply).status = {parse_status_code(code).value_or(StatusCode::crash), sentence};
}
void longca_reply_note(void* reply, const char* name, const char* text) {
  reply_at(reply).notes[name] = text;
}
void longca_reply_number(void* reply, const char* name, double value) {
  reply_at(reply).numbers[name] = value;
}

/// JSON {row: what to install} of the built-in rows; valid while the process runs.
const char* longca_python_rows() {
  static const std::string text = [] {
    nlohmann::json rows = nlohmann::json::object();
    for (const PythonRow& row : python_rows()) rows[row.capabilities.name] = row.install;
    return rows.dump();
  }();
  return text.c_str();
}

/// Adds the kernel of a plug-in, described as `longca list kernels --json` does.
int longca_add_kernel(const char* json) {
  return guarded(kFailed, [&] {
    add_python_kernel(nlohmann::json::parse(json));
    return kDone;
  });
}

/// The mask of a record's "case" object, as a handle to release, and its problem; null if there is
/// none of that description.
const void* longca_case_mask(const char* json, LongcaProblem* problem) {
  return guarded<const void*>(nullptr, [&] {
    const auto c = nlohmann::json::parse(json).get<Case>();
    *problem = to_c(c.problem());
    return new Mask(case_mask(c).mask);
  });
}
void longca_release_mask(const void* mask) {
  delete static_cast<const Mask*>(mask);
}

/// Runs the cells that come over `socket` until its other end closes.
int longca_run_worker(int socket, const char* const* plugins, int plugin_count,
                      const LongcaCallbacks* callbacks) {
  return guarded(kFailed, [&] {
    set_python_callbacks(*callbacks);
    run_worker(socket, std::vector<std::string>(plugins, plugins + plugin_count));
    return kDone;
  });
}

/// The queue of a device (of longca::DeviceKind) that everything of a cell runs on; null on the
/// CPU.
void* longca_stream(std::int32_t device) {
  return guarded<void*>(nullptr,
                        [&] { return Device::get(static_cast<DeviceKind>(device)).stream(); });
}

/// Bytes of a device (of longca::DeviceKind) that the program's tracker has given out; −1 if it
/// does not answer.
std::int64_t longca_bytes_in_use(std::int32_t device) {
  return guarded<std::int64_t>(kFailed, [&] {
    return Device::get(static_cast<DeviceKind>(device)).memory().bytes_in_use();
  });
}

/// Bytes of a device (of longca::DeviceKind) that can be allocated; −1 if it does not answer.
std::int64_t longca_available_bytes(std::int32_t device) {
  return guarded<std::int64_t>(
      kFailed, [&] { return Device::get(static_cast<DeviceKind>(device)).available_bytes(); });
}

}  // extern "C"
