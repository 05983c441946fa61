#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "attention/adapters/cublas/library.h"
#include "attention/adapters/cublas/products.h"
#include "calibrate/cuda/empty_kernel.h"
#include "calibrate/probe_work.h"
#include "calibrate/whole_matrices.h"
#include "core/cuda/error.h"
#include "core/error.h"

namespace longca::calibrate {
namespace {

constexpr unsigned char kCudaPoison = 0xff;  // NaN as float32

Device& gpu() {
  return Device::get(DeviceKind::cuda);
}

cudaStream_t gpu_stream() {
  return static_cast<cudaStream_t>(gpu().stream());
}

class CudaCopy final : public ProbeWork {
 public:
  explicit CudaCopy(std::int64_t bytes) : from_(gpu().memory(), bytes), to_(gpu().memory(), bytes) {
    fill_unevenly(gpu(), from_.data(), bytes);
  }

  void poison() override { gpu().fill(to_.data(), kCudaPoison, to_.bytes()); }
  void call() override {
    LONGCA_CUDA(cudaMemcpyAsync(to_.data(), from_.data(), static_cast<std::size_t>(to_.bytes()),
                                cudaMemcpyDeviceToDevice, gpu_stream()));
  }
  bool is_right(std::uint64_t seed) override {
    return gpu().hash(seed, to_.data(), to_.bytes()) ==
           gpu().hash(seed, from_.data(), from_.bytes());
  }

 private:
  Buffer from_;
  Buffer to_;
};

/// The product of the kernel `naive`: bfloat16 matrices, float32 results, by cuBLAS.
class CudaProduct final : public ProbeWork {
 public:
  explicit CudaProduct(std::int64_t rows)
      : matrices_(rows),
        a_(gpu().memory(), DType::bfloat16, rows, 1, rows),
        b_(gpu().memory(), DType::bfloat16, rows, 1, rows),
        c_(gpu().memory(), rows * rows * std::int64_t{sizeof(float)}) {
    upload(matrices_.a<std::uint16_t>(), a_);
    upload(matrices_.b<std::uint16_t>(), b_);
  }

  void poison() override { gpu().fill(c_.data(), kCudaPoison, c_.bytes()); }
  void call() override {
    const std::int64_t rows = matrices_.rows();
    products_.scores(a_.view(), b_.view(), {c_.as<float>(), 1, rows, rows, rows}, gpu_stream());
  }
  bool is_right(std::uint64_t seed) override {
    std::vector<float> c(static_cast<std::size_t>(c_.bytes()) / sizeof(float));
    gpu().copy(c.data(), c_.data(), c_.bytes());
    return matrices_.are_multiplied_to(c, seed);
  }

 private:
  static void upload(const std::vector<std::uint16_t>& values, const Tensor& to) {
    gpu().copy(to.view().data, values.data(), to.bytes());
  }

  WholeMatrices matrices_;
  Tensor a_;
  Tensor b_;
  Buffer c_;
  naive::Products products_;
};

/// Writes nothing, so there is nothing to check.
class CudaLaunch final : public ProbeWork {
 public:
  explicit CudaLaunch(std::int64_t kernels) : kernels_(kernels) {}

  void poison() override {}
  void call() override {
    for (std::int64_t i = 0; i < kernels_; ++i) queue_empty_kernel(gpu_stream());
  }
  bool is_right(std::uint64_t /*seed*/) override { return true; }

 private:
  std::int64_t kernels_;
};

}  // namespace

std::unique_ptr<ProbeWork> make_cuda_work(const Probe& probe) {
  switch (probe.what) {
    case ProbeWhat::copy:
      return std::make_unique<CudaCopy>(probe.size);
    case ProbeWhat::product:
      if (const Support& cublas = naive::cublas_library().support; !cublas.ok()) {
        throw InputError(cublas.reason);
      }
      return std::make_unique<CudaProduct>(probe.size);
    case ProbeWhat::launch:
      return std::make_unique<CudaLaunch>(probe.size);
  }
  throw_input_error("there is no probe {}", to_text(probe));
}

}  // namespace longca::calibrate
