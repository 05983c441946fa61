#include "bench/measure/nvml.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/shared_library.h"

namespace longca {
namespace {

constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;
constexpr int kSmClock = 1;
constexpr int kMemoryClock = 2;
constexpr int kGpuTemperature = 0;
constexpr unsigned kPowerInstant = 186;  // NVML_FI_DEV_POWER_INSTANT, mW

/// The value that `ask(&value)` gets, of `per` to a unit; nothing if it fails.
template <typename T, typename Ask>
std::optional<double> number(Ask ask, double per = 1) {
  T value{};
  if (ask(&value) != kSuccess) return std::nullopt;
  return static_cast<double>(value) / per;
}

template <typename Ask>
std::optional<std::string> text(Ask ask) {
  std::array<char, 96> buffer{};
  if (ask(buffer.data(), static_cast<unsigned>(buffer.size())) != kSuccess) return std::nullopt;
  return buffer.data();
}

}  // namespace

struct Nvml::Functions {
  // Types of nvml.h as its binary interface has them.
  struct MemoryInfo {
    unsigned long long total, free, used;
  };
  struct PciInfo {
    std::array<char, 16> legacy_id;
    unsigned domain, bus, device, device_id, subsystem_id;
    std::array<char, 32> id;
  };
  struct FieldValue {
    unsigned field, scope;
    long long timestamp, latency_us;
    unsigned type;
    int result;
    union {
      unsigned u;
      unsigned long long ull;
      double d;
    } value;
  };

  int (*init)();
  int (*driver_version)(char*, unsigned);
  int (*cuda_version)(int*);
  int (*count)(unsigned*);
  int (*by_index)(unsigned, Handle*);
  int (*by_pci)(const char*, Handle*);
  int (*name)(Handle, char*, unsigned);
  int (*pci)(Handle, PciInfo*);
  int (*memory)(Handle, MemoryInfo*);
  int (*clock)(Handle, int, unsigned*);
  int (*max_clock)(Handle, int, unsigned*);
  int (*power)(Handle, unsigned*);
  int (*power_limit)(Handle, unsigned*);
  int (*temperature)(Handle, int, unsigned*);
  int (*reasons)(Handle, unsigned long long*);
  int (*fields)(Handle, int, FieldValue*);
  int (*processes)(Handle, unsigned*, void*);  ///< null in a library from before 2022

  /// False if the library lacks one of them.
  bool load(const SharedLibrary& library) {
    library.find("nvmlDeviceGetComputeRunningProcesses_v3", processes);
    const auto find = [&](auto& function, const char* symbol) {
      return library.find(symbol, function);
    };
    return find(init, "nvmlInit_v2") && find(driver_version, "nvmlSystemGetDriverVersion") &&
           find(cuda_version, "nvmlSystemGetCudaDriverVersion_v2") &&
           find(count, "nvmlDeviceGetCount_v2") &&
           find(by_index, "nvmlDeviceGetHandleByIndex_v2") &&
           find(by_pci, "nvmlDeviceGetHandleByPciBusId_v2") && find(name, "nvmlDeviceGetName") &&
           find(pci, "nvmlDeviceGetPciInfo_v3") && find(memory, "nvmlDeviceGetMemoryInfo") &&
           find(clock, "nvmlDeviceGetClockInfo") && find(max_clock, "nvmlDeviceGetMaxClockInfo") &&
           find(power, "nvmlDeviceGetPowerUsage") &&
           find(power_limit, "nvmlDeviceGetEnforcedPowerLimit") &&
           find(temperature, "nvmlDeviceGetTemperature") &&
           find(reasons, "nvmlDeviceGetCurrentClocksThrottleReasons") &&
           find(fields, "nvmlDeviceGetFieldValues");
  }
};

const Nvml* Nvml::get() {
  static const Nvml* const opened = []() -> const Nvml* {
    static Functions functions{};
    SharedLibrary library;
    if (!library.open("libnvidia-ml.so.1") || !functions.load(library) ||
        functions.init() != kSuccess) {
      return nullptr;
    }
    static const Nvml nvml(functions);
    return &nvml;
  }();
  return opened;
}

std::vector<Nvml::Gpu> Nvml::gpus() const {
  std::vector<Gpu> found;
  unsigned count = 0;
  if (call_.count(&count) != kSuccess) return found;
  for (unsigned i = 0; i < count; ++i) {
    Handle gpu = nullptr;
    if (call_.by_index(i, &gpu) != kSuccess) continue;
    Gpu& info = found.emplace_back();
    info.model =
        text([&](char* to, unsigned size) { return call_.name(gpu, to, size); }).value_or("GPU");
    if (Functions::PciInfo pci{}; call_.pci(gpu, &pci) == kSuccess) info.pci_bus_id = pci.id.data();
    if (Functions::MemoryInfo memory{}; call_.memory(gpu, &memory) == kSuccess) {
      info.memory_bytes = static_cast<std::int64_t>(memory.total);
    }
    info.max_sm_clock_mhz =
        number<unsigned>([&](unsigned* mhz) { return call_.max_clock(gpu, kSmClock, mhz); });
    info.max_memory_clock_mhz =
        number<unsigned>([&](unsigned* mhz) { return call_.max_clock(gpu, kMemoryClock, mhz); });
    info.power_limit_w =
        number<unsigned>([&](unsigned* mw) { return call_.power_limit(gpu, mw); }, 1e3);
  }
  return found;
}

std::optional<std::string> Nvml::driver_version() const {
  return text([&](char* to, unsigned size) { return call_.driver_version(to, size); });
}

std::optional<std::string> Nvml::cuda_version() const {
  int version = 0;
  if (call_.cuda_version(&version) != kSuccess) return std::nullopt;
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Nvml::Handle Nvml::find(const std::string& pci_bus_id) const {
  Handle gpu = nullptr;
  return call_.by_pci(pci_bus_id.c_str(), &gpu) == kSuccess ? gpu : nullptr;
}

std::optional<Nvml::Sample> Nvml::sample(Handle gpu) const {
  const auto clock =
      number<unsigned>([&](unsigned* mhz) { return call_.clock(gpu, kSmClock, mhz); });
  auto power = number<unsigned>([&](unsigned* mw) { return call_.power(gpu, mw); }, 1e3);
  Functions::FieldValue instant{};
  instant.field = kPowerInstant;
  if (call_.fields(gpu, 1, &instant) == kSuccess && instant.result == kSuccess) {
    power = instant.value.u / 1e3;
  }
  const auto temperature =
      number<unsigned>([&](unsigned* c) { return call_.temperature(gpu, kGpuTemperature, c); });
  unsigned long long reasons = 0;
  if (!clock || !power || !temperature || call_.reasons(gpu, &reasons) != kSuccess) {
    return std::nullopt;
  }
  return Sample{*clock, *power, *temperature, reasons};
}

std::optional<int> Nvml::processes(Handle gpu) const {
  unsigned count = 0;  // asks for the number alone, which is too small a buffer if there are any
  if (call_.processes == nullptr) return std::nullopt;
  const int result = call_.processes(gpu, &count, nullptr);
  if (result != kSuccess && result != kInsufficientSize) return std::nullopt;
  return static_cast<int>(count);
}

std::string throttle_names(std::uint64_t reasons) {
  constexpr std::array<std::pair<std::uint64_t, const char*>, 5> kNames = {{
      {0x04, "power cap"},
      {0x08, "hardware slowdown"},
      {0x20, "software thermal slowdown"},
      {0x40, "hardware thermal slowdown"},
      {0x80, "power brake"},
  }};
  std::string names;
  for (const auto& [bit, name] : kNames) {
    if ((reasons & bit) != 0) names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

}  // namespace longca
