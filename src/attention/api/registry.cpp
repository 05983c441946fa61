#include "attention/api/registry.h"

#include <algorithm>
#include <utility>

#include "attention/absent_kernel.h"
#include "attention/adapters/cublas/naive_cuda.h"
#include "attention/adapters/cudnn/cudnn.h"
#include "attention/adapters/flashinfer/flashinfer.h"
#include "attention/adapters/python/python_kernel.h"
#include "attention/cpu/kernels.h"
#include "attention/kernels/block_sparse_fa2/fa2_sparse_native.h"
#include "attention/kernels/flashmask/flashmask_native.h"
#include "attention/kernels/slice/slice.h"
#include "core/error.h"
#include "core/nearest.h"

namespace longca {
namespace {

// A build without a kernel still has its row, which says what to install; what the device lacks
// (CUDA, a GPU) it says by itself.

std::unique_ptr<Kernel> naive_cuda() {
#ifdef LONGCA_WITH_CUDA
  return make_naive_cuda();
#else
  return std::make_unique<AbsentKernel>(naive_cuda_capabilities());
#endif
}

std::unique_ptr<Kernel> cudnn() {
#ifdef LONGCA_WITH_CUDNN
  return make_cudnn();
#else
  return std::make_unique<AbsentKernel>(
      cudnn_capabilities(),
      "this build is without cuDNN: install cuDNN 9 with its headers (NVIDIA's package "
      "cudnn9-cuda-13), let scripts/setup fetch its frontend's, and build again",
      cudnn_can_express);
#endif
}

std::unique_ptr<Kernel> flashmask_native() {
#ifdef LONGCA_WITH_CUDA
  return make_flashmask_native();
#else
  return std::make_unique<AbsentKernel>(flashmask_native_capabilities(), "",
                                        flashmask_native_can_express);
#endif
}

std::unique_ptr<Kernel> fa2_sparse_native() {
#ifdef LONGCA_WITH_CUDA
  return make_fa2_sparse_native();
#else
  return std::make_unique<AbsentKernel>(fa2_sparse_native_capabilities(), "",
                                        fa2_sparse_native_can_express);
#endif
}

std::unique_ptr<Kernel> flashinfer_prefill() {
#ifdef LONGCA_WITH_FLASHINFER
  return make_flashinfer();
#else
  return std::make_unique<AbsentKernel>(
      flashinfer_capabilities(),
      "this build is without FlashInfer's headers: let scripts/setup fetch them (PyPI's "
      "flashinfer-python) and build again",
      flashinfer_can_express);
#endif
}

std::unique_ptr<Kernel> slice_cuda() {
#ifdef LONGCA_WITH_CUDA
  return make_slice();
#else
  return std::make_unique<AbsentKernel>(slice_capabilities());
#endif
}

}  // namespace

KernelRegistry& KernelRegistry::global() {
  static KernelRegistry registry = [] {
    KernelRegistry r;
    r.add(make_naive_cpu());
    r.add(naive_cuda());
    r.add(make_flash_cpu());
    r.add(make_block_sparse_cpu());
    for (PythonRow& row : python_rows()) r.add(make_python_kernel(std::move(row)));
    r.add(cudnn());
    r.add(flashinfer_prefill());
    r.add(flashmask_native());
    r.add(fa2_sparse_native());
    r.add(slice_cuda());
    return r;
  }();
  return registry;
}

std::vector<std::string> KernelRegistry::names() const {
  std::vector<std::string> names;
  for (const auto& kernel : kernels_) {
    const std::string& name = kernel->capabilities().name;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

bool KernelRegistry::contains(const std::string& name) const {
  return std::ranges::any_of(
      kernels_, [&](const auto& kernel) { return kernel->capabilities().name == name; });
}

const Kernel& KernelRegistry::find(const std::string& name, DeviceKind device) const {
  const Kernel* elsewhere = nullptr;
  for (const auto& kernel : kernels_) {
    const Capabilities& can = kernel->capabilities();
    if (can.name != name) continue;
    if (can.device == device) return *kernel;
    if (elsewhere == nullptr) elsewhere = kernel.get();
  }
  if (elsewhere != nullptr) return *elsewhere;
  throw_input_error("unknown kernel '{}'{}", name, suggestion(name, names()));
}

void KernelRegistry::add(std::unique_ptr<Kernel> kernel) {
  const Capabilities& can = kernel->capabilities();
  for (const auto& known : kernels_) {
    if (known->capabilities().name == can.name && known->capabilities().device == can.device) {
      throw_input_error("a kernel named '{}' exists already", can.name);
    }
  }
  kernels_.push_back(std::move(kernel));
}

}  // namespace longca
