#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "longca.h"
#include "parallel/transport/communicator.h"
#include "parallel/transport/transports.h"

namespace longca::capi {

/// Messages between the hosts of ranks, by the caller's transport: a group of one at a time.
class CallersMessages final : public RankMessages {
 public:
  CallersMessages(const longca_transport& transport, int rank, int size)
      : transport_(transport), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override;
  void send(int to, const void* data, std::int64_t bytes) override;
  void receive(int from, void* data, std::int64_t bytes) override;

 private:
  void move(const longca_message* receive, const longca_message* send);

  longca_transport transport_;
  int rank_;
  int size_;
};

/// The connected GPUs of the ranks, and plans that were released but whose last call may still run:
/// other ranks use the memory of their communicators, and freed memory could serve a plan on
/// another stream.
class GpuGroup {
 public:
  GpuGroup(const longca_transport& transport, int rank, int ranks, const char* name);
  ~GpuGroup();
  GpuGroup(const GpuGroup&) = delete;
  GpuGroup& operator=(const GpuGroup&) = delete;

  RankMessages& hosts() { return hosts_; }
  const std::string& transport() const { return transport_; }
  /// Collective.
  std::unique_ptr<Communicator> make_communicator() { return connections_->make_communicator(); }

  /// Any thread, also while another one makes a plan.
  void release(std::unique_ptr<longca_rank_plan> plan) noexcept;
  /// Ends released plans that their GPU is done with. One thread at a time, as plans are made.
  void end_idle_plans();
  /// Waits for all of them and ends them.
  void end_plans();

 private:
  CallersMessages hosts_;
  std::string transport_;
  std::unique_ptr<CudaConnections> connections_;
  std::mutex mutex_;  ///< of released_
  std::vector<std::unique_ptr<longca_rank_plan>> released_;
};

}  // namespace longca::capi
