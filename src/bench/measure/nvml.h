#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace longca {

/// NVIDIA's management library (libnvidia-ml.so.1, part of the driver): what GPUs there are, and
/// how their clocks and power go. Opened at run time, so that neither building nor running needs
/// it.
class Nvml {
 public:
  /// Null where there is no driver. Opened once and kept.
  static const Nvml* get();

  /// What is known of a GPU; what the driver does not report is absent.
  struct Gpu {
    std::string model;
    std::string pci_bus_id;
    std::optional<std::int64_t> memory_bytes;
    std::optional<double> max_sm_clock_mhz;
    std::optional<double> max_memory_clock_mhz;
    std::optional<double> power_limit_w;
  };
  std::vector<Gpu> gpus() const;
  std::optional<std::string> driver_version() const;
  /// The CUDA version that the driver supports, "13.0".
  std::optional<std::string> cuda_version() const;

  /// A GPU's state at one moment.
  struct Sample {
    double sm_clock_mhz = 0;
    double power_w = 0;  ///< instantaneous where the driver reports it, else over the last second
    double temperature_c = 0;
    std::uint64_t throttle_reasons = 0;  ///< bits of nvmlClocksEventReasons
  };
  using Handle = void*;
  /// The GPU of a PCI bus id; null if there is none.
  Handle find(const std::string& pci_bus_id) const;
  /// Nothing if the driver does not report it.
  std::optional<Sample> sample(Handle gpu) const;
  /// How many processes have a context on the GPU; nothing if the driver does not report it.
  std::optional<int> processes(Handle gpu) const;

 private:
  struct Functions;
  explicit Nvml(const Functions& functions) : call_(functions) {}

  const Functions& call_;
};

/// The names of those reasons that mean throttling (power, heat, hardware), joined by ", "; "" if
/// there are none. An idle GPU and clocks set by a user are no throttling.
std::string throttle_names(std::uint64_t reasons);

}  // namespace longca
