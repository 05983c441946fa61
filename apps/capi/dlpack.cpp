#include "dlpack.h"

#include <array>
#include <string>

#include "answer.h"
#include "core/device.h"
#include "longca.h"
#include "mask/range.h"
#include "problems.h"

namespace longca::capi {
namespace {

/// A tensor that has been checked. The stride of a dimension of 1 means nothing and is as if the
/// tensor were contiguous.
struct Checked {
  void* data;
  std::array<std::int64_t, 3> shape;
  std::array<std::int64_t, 3> strides;
};

std::string describe(std::uint8_t code, int bits) {
  const char* kind = code == kDlFloat ? "float" : code == kDlBfloat ? "bfloat" : nullptr;
  return kind != nullptr ? fmt::format("{}{}", kind, bits) : fmt::format("type {}:{}", code, bits);
}

void check_device(const DlpackTensor& t, std::int32_t device) {
  if (device == LONGCA_CPU) {
    if (t.device_type == kDlCpu || t.device_type == kDlCudaHost) return;
    throw_input_error(
        "the DLPack tensor is on DLPack's device type {}, the problem on LONGCA_CPU, which is {} "
        "there",
        t.device_type, static_cast<int>(kDlCpu));
  }
  if (t.device_type != kDlCuda && t.device_type != kDlCudaManaged) {
    throw_input_error(
        "the DLPack tensor is on DLPack's device type {}, the problem on LONGCA_CUDA, which is {} "
        "there",
        t.device_type, static_cast<int>(kDlCuda));
  }
  const std::int64_t index = wanted_cuda_index();
  if (t.device_type == kDlCuda && t.device_id != index) {
    throw_input_error("the DLPack tensor is on GPU {}, this process uses GPU {} (LONGCA_DEVICE)",
                      t.device_id, index);
  }
}

void check_dtype(const DlpackTensor& t, std::int32_t dtype) {
  if (dtype < LONGCA_FLOAT32 || dtype > LONGCA_FLOAT16) {
    throw_input_error("dtype = {}: LONGCA_FLOAT32, LONGCA_BFLOAT16 or LONGCA_FLOAT16", dtype);
  }
  const std::uint8_t code = dtype == LONGCA_BFLOAT16 ? kDlBfloat : kDlFloat;
  const int bits = dtype == LONGCA_FLOAT32 ? 32 : 16;
  if (t.lanes != 1) throw_input_error("the DLPack tensor has {} lanes: 1 is meant", t.lanes);
  if (t.code != code || t.bits != bits) {
    throw_input_error("the DLPack tensor has {}, not {}", describe(t.code, t.bits),
                      describe(code, bits));
  }
}

/// `ndim` is 2 or 3.
Checked check(const DlpackTensor& t, const longca_problem& problem, std::int32_t dtype, int ndim) {
  if (t.ndim != ndim) {
    throw_input_error("the DLPack tensor has {} dimensions: {} is meant", t.ndim,
                      ndim == 3 ? "[tokens, heads, dim]" : "[heads, tokens]");
  }
  check_device(t, problem.device);
  check_dtype(t, dtype);
  Checked checked{};
  required(t.shape, "the DLPack tensor's shape");
  std::int64_t stride = 1;
  for (int i = ndim - 1; i >= 0; --i) {
    if (t.shape[i] < 0 || t.shape[i] > kMaxTokens) {
      throw_input_error("dimension {} of the DLPack tensor is {}: at least 0, at most {}", i,
                        t.shape[i], kMaxTokens);
    }
    checked.shape.at(i) = t.shape[i];
    checked.strides.at(i) = t.strides != nullptr && t.shape[i] > 1 ? t.strides[i] : stride;
    if (checked.strides.at(i) < 0) {
      throw_input_error("dimension {} of the DLPack tensor has stride {}: at least 0", i,
                        checked.strides.at(i));
    }
    if (i > 0) stride *= t.shape[i];
  }
  if (checked.strides.at(ndim - 1) != 1) {
    throw_input_error("the DLPack tensor has stride {} in its last dimension: 1 is meant",
                      checked.strides.at(ndim - 1));
  }
  if (t.byte_offset % (t.bits / 8) != 0) {
    throw_input_error("the DLPack tensor has byte_offset {}: a multiple of {}, its element's bytes",
                      t.byte_offset, t.bits / 8);
  }
  // An empty tensor may have no data; the call says where it needs some.
  checked.data = t.data == nullptr ? nullptr : static_cast<std::byte*>(t.data) + t.byte_offset;
  return checked;
}

longca_tensor tensor_of(const DlpackTensor& from, const longca_problem& problem) {
  const Checked t = check(from, problem, problem.dtype, 3);
  return {t.data, t.shape[0], t.shape[1], t.shape[2], t.strides[0], t.strides[1]};
}

longca_lse lse_of(const DlpackTensor& from, const longca_problem& problem) {
  const Checked t = check(from, problem, LONGCA_FLOAT32, 2);
  return {static_cast<float*>(t.data), t.shape[0], t.shape[1], t.strides[0]};
}

/// The tensor, if its version is known and it may be used as is meant. Only the version is read of
/// another one.
const DlpackTensor& readable(const DLManagedTensorVersioned* from, std::int32_t written) {
  const auto& managed = required(from, "from");
  if (managed.major != kDlpackMajor) {
    throw Refusal(LONGCA_UNSUPPORTED,
                  fmt::format("the DLPack tensor has version {}.{}: this library knows version {}",
                              managed.major, managed.minor, kDlpackMajor));
  }
  if (written != 0 && (managed.flags & kDlpackReadOnly) != 0) {
    throw_input_error("the DLPack tensor is read-only: a call would write to it");
  }
  return managed.dl_tensor;
}

}  // namespace
}  // namespace longca::capi

extern "C" {

using namespace longca::capi;

longca_status longca_tensor_from_dlpack(const DLManagedTensor* from, const longca_problem* problem,
                                        longca_tensor* tensor) {
  return answer([&] {
    required(tensor, "tensor") =
        tensor_of(required(from, "from").dl_tensor, known_problem(problem));
  });
}

longca_status longca_tensor_from_dlpack_versioned(const DLManagedTensorVersioned* from,
                                                  const longca_problem* problem, int32_t written,
                                                  longca_tensor* tensor) {
  return answer([&] {
    required(tensor, "tensor") = tensor_of(readable(from, written), known_problem(problem));
  });
}

longca_status longca_lse_from_dlpack(const DLManagedTensor* from, const longca_problem* problem,
                                     longca_lse* lse) {
  return answer([&] {
    required(lse, "lse") = lse_of(required(from, "from").dl_tensor, known_problem(problem));
  });
}

longca_status longca_lse_from_dlpack_versioned(const DLManagedTensorVersioned* from,
                                               const longca_problem* problem, int32_t written,
                                               longca_lse* lse) {
  return answer(
      [&] { required(lse, "lse") = lse_of(readable(from, written), known_problem(problem)); });
}

}  // extern "C"
