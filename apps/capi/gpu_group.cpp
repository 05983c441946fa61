// Groups of GPUs of longca.h.

#include "gpu_group.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "answer.h"
#include "core/counted.h"
#include "core/device.h"
#include "keep_released.h"
#include "parallel/transport/rank_exchange.h"
#include "problems.h"
#include "rank_plan.h"

namespace longca::capi {

void CallersMessages::move(const longca_message* receive, const longca_message* send) {
  const int failed = transport_.start(transport_.context, 0, receive, receive != nullptr ? 1 : 0,
                                      send, send != nullptr ? 1 : 0);
  if (failed != 0 || transport_.finish(transport_.context, 0) != 0) {
    throw std::runtime_error(
        send != nullptr ? fmt::format("the caller's transport could not send {} to rank {}",
                                      counted(send->bytes, "byte"), send->peer)
                        : fmt::format("the caller's transport could not receive {} from rank {}",
                                      counted(receive->bytes, "byte"), receive->peer));
  }
}

void CallersMessages::send(int to, const void* data, std::int64_t bytes) {
  const longca_message message{to, 0, const_cast<void*>(data), bytes};
  move(nullptr, &message);
}

void CallersMessages::receive(int from, void* data, std::int64_t bytes) {
  const longca_message message{from, 0, data, bytes};
  move(&message, nullptr);
}

void CallersMessages::barrier() {
  let_first_decide(*this, char{}, [](const std::vector<char>&) { return char{}; });
}

namespace {

/// The transport, which all ranks have; throws Refusal where they lack it.
std::string chosen_transport(const char* name, RankMessages& hosts) {
  std::string transport = name != nullptr ? name : "peer";
  Support support = transport_available(transport, hosts);
  if (name == nullptr && !support.ok()) {
    transport = "nccl";
    support = transport_available(transport, hosts);
  }
  if (support.code == StatusCode::unavailable) throw Refusal(LONGCA_UNAVAILABLE, support.reason);
  return transport;
}

}  // namespace

GpuGroup::GpuGroup(const longca_transport& transport_of_hosts, int rank, int ranks,
                   const char* name)
    : hosts_(transport_of_hosts, rank, ranks),
      transport_(chosen_transport(name, hosts_)),
      connections_(make_cuda_connections(transport_, hosts_)) {}

GpuGroup::~GpuGroup() = default;

void GpuGroup::release(std::unique_ptr<longca_rank_plan> plan) noexcept {
  const std::scoped_lock lock(mutex_);
  keep_released(std::move(plan), released_);
}

void GpuGroup::end_idle_plans() {
  const std::scoped_lock lock(mutex_);
  std::erase_if(released_, [](const auto& plan) { return plan->idle(); });
}

void GpuGroup::end_plans() {
  const std::scoped_lock lock(mutex_);
  for (const auto& plan : released_) plan->wait();
  released_.clear();
}

}  // namespace longca::capi

extern "C" {

using namespace longca;
using namespace longca::capi;

longca_status longca_gpu_group_create(int32_t rank, int32_t ranks,
                                      const longca_transport* transport, const char* name,
                                      longca_gpu_group** group) {
  return answer([&] {
    const longca_transport& t = required(transport, "transport");
    check_transport(t);
    check_rank(rank, ranks);
    give(group, "group", [&] {
      auto made = std::make_unique<longca_gpu_group>();
      made->group = std::make_shared<GpuGroup>(t, rank, ranks, name);
      return made;
    });
  });
}

const char* longca_gpu_group_transport(const longca_gpu_group* group) {
  return group == nullptr ? nullptr : group->group->transport().c_str();
}

void longca_gpu_group_release(longca_gpu_group* group) {
  if (group == nullptr) return;
  guarded(0, [&] {
    const std::unique_ptr<longca_gpu_group> ended(group);
    ended->group->end_plans();  // which hold the group in turn
    return 0;
  });
}

}  // extern "C"
