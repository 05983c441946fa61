// Groups of GPUs of longca.h.

#include "gpu_group.h"

#include <stdexcept>
#include <utility>

#include "answer.h"
#include "core/device.h"
#include "parallel/transport/rank_exchange.h"
#include "rank_plan.h"

namespace longca::capi {

void CallersControl::move(const longca_message* receive, const longca_message* send) {
  const int failed = transport_.start(transport_.context, 0, receive, receive != nullptr ? 1 : 0,
                                      send, send != nullptr ? 1 : 0);
  if (failed != 0 || transport_.finish(transport_.context, 0) != 0) {
    throw std::runtime_error("the caller's transport could not move a message between hosts");
  }
}

void CallersControl::send(int to, const void* data, std::int64_t bytes) {
  const longca_message message{to, 0, const_cast<void*>(data), bytes};
  move(nullptr, &message);
}

void CallersControl::receive(int from, void* data, std::int64_t bytes) {
  const longca_message message{from, 0, data, bytes};
  move(&message, nullptr);
}

void CallersControl::barrier() {
  exchange_records(*this, char{});
}

double CallersControl::max(double value) {
  return std::ranges::max(exchange_records(*this, value));
}

double CallersControl::sum(double value) {
  double sum = 0;
  for (const double of_rank : exchange_records(*this, value)) sum += of_rank;
  return sum;
}

double CallersControl::broadcast(double value) {
  return exchange_records(*this, value).front();
}

std::string CallersControl::broadcast(const std::string& text) {
  std::string answer = text;
  const auto size = static_cast<std::int64_t>(broadcast(static_cast<double>(text.size())));
  answer.resize(static_cast<std::size_t>(size));
  if (size == 0) return answer;
  for (int peer = 1; rank_ == 0 && peer < size_; ++peer) send(peer, answer.data(), size);
  if (rank_ > 0) receive(0, answer.data(), size);
  return answer;
}

std::vector<double> CallersControl::gather(double value) {
  std::vector<double> all = exchange_records(*this, value);
  if (rank_ > 0) all.clear();
  return all;
}

std::vector<std::string> CallersControl::gather(const std::string& text) {
  const auto sizes = exchange_records(*this, static_cast<std::int64_t>(text.size()));
  if (rank_ > 0) {
    if (!text.empty()) send(0, text.data(), static_cast<std::int64_t>(text.size()));
    return {};
  }
  std::vector<std::string> all{text};
  for (int peer = 1; peer < size_; ++peer) {
    const std::int64_t size = sizes[static_cast<std::size_t>(peer)];
    std::string& theirs = all.emplace_back(static_cast<std::size_t>(size), '\0');
    if (size > 0) receive(peer, theirs.data(), size);
  }
  return all;
}

namespace {

std::string chosen_transport(const char* name, RankControl& control) {
  if (name != nullptr) return name;
  return transport_available("peer", control).ok() ? "peer" : "nccl";
}

}  // namespace

GpuGroup::GpuGroup(const longca_transport& transport_of_hosts, int rank, int ranks,
                   const char* name)
    : control_(transport_of_hosts, rank, ranks),
      transport_(chosen_transport(name, control_)),
      connections_(make_cuda_connections(transport_, control_)) {}

GpuGroup::~GpuGroup() = default;

void GpuGroup::release(std::unique_ptr<longca_rank_plan> plan) {
  const std::scoped_lock lock(mutex_);
  released_.push_back(std::move(plan));
}

void GpuGroup::end_idle_plans() {
  std::vector<std::unique_ptr<longca_rank_plan>> idle;
  const std::scoped_lock lock(mutex_);
  for (auto& plan : released_) {
    if (plan->idle()) idle.push_back(std::move(plan));
  }
  std::erase(released_, nullptr);
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
    if (t.start == nullptr || t.finish == nullptr) {
      throw_input_error("the transport lacks start or finish");
    }
    if (ranks < 1 || rank < 0 || rank >= ranks) {
      throw_input_error("rank = {} of {} ranks: 0 to ranks − 1", rank, ranks);
    }
    auto made = std::make_unique<longca_gpu_group>();
    longca_gpu_group*& result = required(group, "group");
    made->group = std::make_shared<GpuGroup>(t, rank, ranks, name);
    result = made.release();
  });
}

const char* longca_gpu_group_transport(const longca_gpu_group* group) {
  return group->group->transport().c_str();
}

void longca_gpu_group_release(longca_gpu_group* group) {
  if (group == nullptr) return;
  group->group->end_plans();  // which hold the group in turn
  delete group;
}

}  // extern "C"
