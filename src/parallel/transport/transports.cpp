#include "parallel/transport/transports.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "core/error.h"
#include "parallel/transport/nccl/nccl_communicator.h"
#include "parallel/transport/peer/peer_communicator.h"
#include "parallel/transport/peer/stream_values.h"
#include "parallel/transport/rank_exchange.h"

namespace longca {
namespace {

/// The host and GPU of a rank.
struct RankPlace {
  std::array<char, 128> host{};  ///< host name
  std::array<char, 64> boot{};   ///< boot id: tells machines of one name apart
  std::array<char, 32> gpu{};    ///< PCI bus id

  bool same_host(const RankPlace& other) const { return host == other.host && boot == other.boot; }
};

RankPlace own_place() {
  RankPlace place;
  gethostname(place.host.data(), place.host.size() - 1);
  std::ifstream("/proc/sys/kernel/random/boot_id").getline(place.boot.data(), place.boot.size());
  const std::string& gpu = Device::get(DeviceKind::cuda).properties().pci_bus_id;
  gpu.copy(place.gpu.data(), place.gpu.size() - 1);
  return place;
}

Support one_gpu_each(const std::vector<RankPlace>& places) {
  for (std::size_t a = 0; a < places.size(); ++a) {
    for (std::size_t b = a + 1; b < places.size(); ++b) {
      if (places[a].same_host(places[b]) && places[a].gpu == places[b].gpu) {
        return Support::unavailable(
            fmt::format("ranks {} and {} share the GPU {} of {}: start at most one rank per GPU", a,
                        b, places[a].gpu.data(), places[a].host.data()));
      }
    }
  }
  return {};
}

/// Ok if this rank's GPU has peer access to those of all other ranks.
Support reaches_all(const std::vector<RankPlace>& places, const RankPlace& mine) {
  int own = 0;
  cudaDeviceGetByPCIBusId(&own, mine.gpu.data());
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const RankPlace& place = places[rank];
    if (!mine.same_host(place)) {
      return Support::unavailable(
          fmt::format("peer copies inside one host, but rank {} is on {} and another on {}", rank,
                      place.host.data(), mine.host.data()));
    }
    if (place.gpu == mine.gpu) continue;
    int other = 0;
    int reaches = 0;
    if (cudaDeviceGetByPCIBusId(&other, place.gpu.data()) != cudaSuccess) {
      cudaGetLastError();
      return Support::unavailable(
          fmt::format("the GPU {} of rank {} is hidden (CUDA_VISIBLE_DEVICES): show every rank all "
                      "GPUs and choose by LONGCA_DEVICE",
                      place.gpu.data(), rank));
    }
    if (cudaDeviceCanAccessPeer(&reaches, own, other) != cudaSuccess || reaches == 0) {
      cudaGetLastError();
      return Support::unavailable(fmt::format(
          "the GPU {} cannot reach the memory of {}, of rank {} (nvidia-smi topo -p2p rw)",
          mine.gpu.data(), place.gpu.data(), rank));
    }
  }
  return stream_values_available();
}

Support own_support(const std::string& transport) {
  if (const Support& gpu = Device::available(DeviceKind::cuda); !gpu.ok()) return gpu;
  return transport == "nccl" ? nccl_available() : Support{};
}

}  // namespace

void set_transport_environment() {
  constexpr int kKeep = 0;
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", kKeep);
  setenv("NCCL_NVLS_ENABLE", "0", kKeep);
}

Support nccl_available() {
  return check_nccl();
}

Support transport_available(const std::string& transport, RankControl& control) {
  check_cuda_transport(transport);
  if (Support all = agree(control, own_support(transport)); !all.ok()) return all;
  const RankPlace mine = own_place();
  const std::vector<RankPlace> places = exchange_records(control, mine);
  Support answer = one_gpu_each(places);
  if (answer.ok() && transport == "peer") answer = reaches_all(places, mine);
  return agree(control, answer);
}

std::unique_ptr<Communicator> make_cuda_communicator(const std::string& transport,
                                                     RankControl& control) {
  if (const Support support = transport_available(transport, control); !support.ok()) {
    throw InputError(support.reason);
  }
  if (transport == "nccl") return make_nccl_communicator(control);
  return make_peer_communicator(control);
}

}  // namespace longca
