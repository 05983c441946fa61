#pragma once

#include <cstdint>

// DLPack's structures (github.com/dmlc/dlpack) as far as longca reads them: the layout is fixed for
// all releases of major version 1, and DLManagedTensor's for those before. Debian 12's
// libdlpack-dev is older than the versioned one.

namespace longca::capi {

constexpr std::uint32_t kDlpackMajor = 1;
constexpr std::uint64_t kDlpackReadOnly = 1;

enum DlpackDevice : std::int32_t { kDlCpu = 1, kDlCuda = 2, kDlCudaHost = 3, kDlCudaManaged = 13 };
enum DlpackCode : std::uint8_t { kDlFloat = 2, kDlBfloat = 4 };

struct DlpackTensor {
  void* data;
  std::int32_t device_type;
  std::int32_t device_id;
  std::int32_t ndim;
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
  const std::int64_t* shape;
  const std::int64_t* strides;  ///< in elements; null: contiguous
  std::uint64_t byte_offset;
};

}  // namespace longca::capi

struct DLManagedTensor {
  longca::capi::DlpackTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};

struct DLManagedTensorVersioned {
  std::uint32_t major;
  std::uint32_t minor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
  longca::capi::DlpackTensor dl_tensor;
};
