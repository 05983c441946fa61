#include "attention/adapters/python/python_kernel.h"
#include "attention/api/registry.h"

namespace longca {

// Adds what `std::unique_ptr<Kernel> factory()` returns, which the kernel's own file defines in
// every build (absent_kernel.h).
#define LONGCA_ADD_KERNEL(factory)          \
  extern std::unique_ptr<Kernel> factory(); \
  registry.add(factory())

/// The order is that of the tables.
KernelRegistry& KernelRegistry::global() {
  static KernelRegistry all = [] {
    KernelRegistry registry;
    LONGCA_ADD_KERNEL(make_naive_cpu);
    LONGCA_ADD_KERNEL(make_naive_cuda);
    LONGCA_ADD_KERNEL(make_flash_cpu);
    LONGCA_ADD_KERNEL(make_block_sparse_cpu);
    for (PythonRow& row : python_rows()) registry.add(make_python_kernel(std::move(row)));
    LONGCA_ADD_KERNEL(make_cudnn);
    LONGCA_ADD_KERNEL(make_flashinfer);
    LONGCA_ADD_KERNEL(make_flashmask_native);
    LONGCA_ADD_KERNEL(make_fa2_sparse_native);
    LONGCA_ADD_KERNEL(make_slice);
    return registry;
  }();
  return all;
}

}  // namespace longca
