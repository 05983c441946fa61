#include "parallel/transport/transports.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <vector>

#include "core/error.h"
#include "parallel/transport/nccl/nccl_communicator.h"
#include "parallel/transport/peer/peer_communicator.h"
#include "parallel/transport/peer/stream_values.h"
#include "parallel/transport/rank_exchange.h"
#include "parallel/transport/rank_place.h"

namespace longca {
namespace {

RankPlace own_place() {
  RankPlace place;
  gethostname(place.host.data(), place.host.size() - 1);
  std::ifstream("/proc/sys/kernel/random/boot_id").getline(place.boot.data(), place.boot.size());
  const std::string& gpu = Device::get(DeviceKind::cuda).properties().pci_bus_id;
  gpu.copy(place.gpu.data(), place.gpu.size() - 1);
  return place;
}

/// Ok if this rank's GPU has peer access to those of all other ranks.
Support reaches_all(const std::vector<RankPlace>& places, int own_rank) {
  if (Support here = all_on_host_of(own_rank, places); !here.ok()) return here;
  const RankPlace& mine = places[static_cast<std::size_t>(own_rank)];
  int own = 0;
  if (const cudaError_t error = cudaDeviceGetByPCIBusId(&own, mine.gpu.data());
      error != cudaSuccess) {
    cudaGetLastError();
    return Support::unavailable(fmt::format("the GPU {} of rank {} is not found: {}",
                                            mine.gpu.data(), own_rank, cudaGetErrorString(error)));
  }
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const RankPlace& place = places[rank];
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

Support transport_available(const std::string& transport, RankMessages& control) {
  check_cuda_transport(transport);
  if (Support all = agree(control, own_support(transport)); !all.ok()) return all;
  const std::vector<RankPlace> places = exchange_records(control, own_place());
  Support answer = one_gpu_each(places);
  if (answer.ok() && transport == "peer") answer = reaches_all(places, control.rank());
  return agree(control, answer);
}

std::unique_ptr<CudaConnections> make_cuda_connections(const std::string& transport,
                                                       RankMessages& control) {
  if (const Support support = transport_available(transport, control); !support.ok()) {
    throw InputError(support.reason);
  }
  if (transport == "nccl") return make_nccl_connections(control);
  return make_peer_connections(control);
}

std::unique_ptr<Communicator> make_cuda_communicator(const std::string& transport,
                                                     RankMessages& control) {
  return make_cuda_connections(transport, control)->make_communicator();
}

}  // namespace longca
