#include "calibrate/probe_work.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "attention/cpu/micro_kernels.h"
#include "calibrate/whole_matrices.h"
#include "core/error.h"
#include "core/thread_pool.h"

namespace longca::calibrate {
namespace {

constexpr unsigned char kPoison = 0xff;  // NaN as float32

/// Every thread copies its share.
class CpuCopy final : public ProbeWork {
 public:
  explicit CpuCopy(std::int64_t bytes) : from_(bytes), to_(bytes) {
    fill_unevenly(Device::get(DeviceKind::cpu), from_.data(), bytes);
  }

  void poison() override {
    std::memset(to_.data(), kPoison, static_cast<std::size_t>(to_.bytes()));
  }
  void call() override {
    const int parts = ThreadPool::global().threads();
    ThreadPool::global().parallel_for(parts, [&](std::int64_t part, int /*worker*/) {
      const std::int64_t begin = to_.bytes() * part / parts;
      const std::int64_t end = to_.bytes() * (part + 1) / parts;
      std::memcpy(to_.as<std::byte>() + begin, from_.as<std::byte>() + begin,
                  static_cast<std::size_t>(end - begin));
    });
  }
  bool is_right(std::uint64_t /*seed*/) override {
    return std::memcmp(to_.data(), from_.data(), static_cast<std::size_t>(to_.bytes())) == 0;
  }

 private:
  HostBuffer from_;
  HostBuffer to_;
};

/// By the inner loops of the CPU kernels: blocks of C of kUnit rows and columns, for each of which
/// B's part of kUnit steps stays in the L2 cache.
class CpuProduct final : public ProbeWork {
 public:
  explicit CpuProduct(std::int64_t rows)
      : matrices_(rows),
        a_(matrices_.a<float>()),
        packed_b_(static_cast<std::size_t>(rows * rows)),
        c_(static_cast<std::size_t>(rows * rows)) {
    if (rows % kUnit != 0) throw_input_error("{} rows are no multiple of {}", rows, kUnit);
    const std::vector<float> b = matrices_.b<float>();
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t k = 0; k < rows; ++k) {
        const std::int64_t panel = row / cpu::kPanelKeys;
        const std::int64_t to = (panel * rows + k) * cpu::kPanelKeys + row % cpu::kPanelKeys;
        packed_b_[static_cast<std::size_t>(to)] = b[static_cast<std::size_t>(row * rows + k)];
      }
    }
  }

  void poison() override { std::memset(c_.data(), kPoison, c_.size() * sizeof(float)); }
  void call() override {
    const std::int64_t across = matrices_.rows() / kUnit;
    ThreadPool::global().parallel_for(across * across, [&](std::int64_t block, int /*worker*/) {
      multiply_block(block / across * kUnit, block % across * kUnit);
    });
  }
  bool is_right(std::uint64_t seed) override { return matrices_.are_multiplied_to(c_, seed); }

 private:
  static constexpr std::int64_t kUnit = 256;  ///< rows, columns and steps of a block

  void multiply_block(std::int64_t first_row, std::int64_t first_column) {
    const std::int64_t rows = matrices_.rows();
    for (std::int64_t step = 0; step < rows; step += kUnit) {
      for (std::int64_t row = first_row; row < first_row + kUnit; row += cpu::kGroupRows) {
        cpu::Product product;
        product.a = a_.data() + row * rows + step;
        product.a_row = rows;
        product.a_step = 1;
        product.b = packed_b_.data() + first_column * rows + step * cpu::kPanelKeys;
        product.b_step = cpu::kPanelKeys;
        product.b_panel = rows * cpu::kPanelKeys;
        product.panels = static_cast<int>(kUnit / cpu::kPanelKeys);
        product.steps = kUnit;
        product.c = c_.data() + row * rows + first_column;
        product.c_row = rows;
        product.add = step > 0;
        cpu::float32_kernels().product(product);
      }
    }
  }

  WholeMatrices matrices_;
  std::vector<float> a_;
  std::vector<float> packed_b_;
  std::vector<float> c_;
};

}  // namespace

void fill_unevenly(Device& device, void* data, std::int64_t bytes, int first) {
  constexpr std::int64_t kParts = 64;
  for (std::int64_t part = 0; part < kParts; ++part) {
    const std::int64_t begin = bytes * part / kParts;
    const std::int64_t end = bytes * (part + 1) / kParts;
    device.fill(static_cast<std::byte*>(data) + begin,
                static_cast<unsigned char>((first + part) % kPoison), end - begin);
  }
}

std::unique_ptr<ProbeWork> make_cpu_work(const Probe& probe) {
  switch (probe.what) {
    case ProbeWhat::copy:
      return std::make_unique<CpuCopy>(probe.size);
    case ProbeWhat::product:
      return std::make_unique<CpuProduct>(probe.size);
    case ProbeWhat::launch:
      break;
  }
  throw_input_error("the CPU launches no kernels: there is no probe {}", to_text(probe));
}

std::unique_ptr<ProbeWork> make_probe_work(const Probe& probe, DeviceKind kind) {
  if (kind == DeviceKind::cpu) return make_cpu_work(probe);
#ifdef LONGCA_WITH_CUDA
  return make_cuda_work(probe);
#else
  throw InputError(Device::available(kind).reason);
#endif
}

}  // namespace longca::calibrate
