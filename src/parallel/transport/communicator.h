#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/error.h"
#include "parallel/plan/plan.h"
#include "parallel/transport/address_map.h"

namespace longca {

/// One message: `rows` rows of `row_bytes`, `stride_bytes` from one row to the next. Sender and
/// receiver agree on rows and row_bytes; their strides may differ.
struct Transfer {
  int peer = 0;
  void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
  std::int64_t stride_bytes = 0;

  std::int64_t bytes() const { return rows * row_bytes; }
};

/// The messages of one exchange of one rank. None is empty.
struct TransferGroup {
  Pattern pattern = Pattern::send_receive;
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;
  /// No attention kernel runs while the group is in flight, so the transport may use the SMs.
  bool alone = false;
  /// Messages may land before `start`: nothing touches the receive buffers from `expect` on.
  bool lands_early = false;
};

/// Moves messages between the ranks of one case: MPI or a C caller's functions for the CPU, NCCL or
/// copies to a peer's memory for GPUs. Every rank makes the matching calls in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual std::string name() const = 0;  ///< "mpi", "nccl", "peer", "caller"
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The version of the library, for the record.
  virtual std::string version() const = 0;

  /// Returns zeroed memory for send and receive buffers, counted by the device's tracker and freed
  /// with the communicator. Collective, in the same order on all ranks; sizes may differ. A
  /// transport that registers its buffers exchanges their handles here.
  virtual void* allocate(std::int64_t bytes) = 0;

  /// Registers a group for later calls of `start` (staging memory, handles) and returns its number.
  /// All ranks prepare the matching groups in the same order.
  virtual int prepare(const TransferGroup& group) = 0;
  /// The same for several groups: a transport may ask the other ranks once instead of for each.
  virtual std::vector<int> prepare_all(std::span<const TransferGroup> groups) {
    std::vector<int> numbers;
    for (const TransferGroup& group : groups) numbers.push_back(prepare(group));
    return numbers;
  }
  /// Announces, at the beginning of a pass, the groups that `start` will be called with until the
  /// next `expect`, in this order. On a GPU queued on `stream`. Any rank may omit the call.
  virtual void expect(std::span<const int> /*groups*/, Stream /*stream*/) {}
  /// From now on, messages are sent from where the map, which must outlive this object, says that
  /// they lie; what is received lies as prepared. Only between GPUs.
  virtual void map_sends(const AddressMap& /*map*/) {
    throw_internal_error(__FILE__, __LINE__, "map_sends", name() + " sends from where it prepared");
  }
  /// Starts a prepared group: on a GPU queued on `stream` without blocking the host, on the CPU
  /// posted, for `finish` to complete.
  virtual void start(int group, Stream stream) = 0;
  /// Blocks until the group's sends and receives are complete. A no-op on a GPU, where the stream
  /// orders what follows.
  virtual void finish(int group) = 0;
  /// Lets a transport that needs the host make progress; called between compute ops.
  virtual void progress() {}

  /// Barrier over all ranks; on a GPU on the stream, without blocking the host.
  virtual void barrier(Stream stream) = 0;

  /// Bytes sent to other ranks by `start` since the last reset.
  std::int64_t bytes_sent() const { return bytes_sent_; }
  void reset_bytes_sent() { bytes_sent_ = 0; }

 protected:
  void count_sent(std::int64_t bytes) { bytes_sent_ += bytes; }

 private:
  std::int64_t bytes_sent_ = 0;
};

/// Small messages between the ranks' host threads: what transports between GPUs need to connect.
class RankMessages {
 public:
  virtual ~RankMessages() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Collective.
  virtual void barrier() = 0;
  /// Point to point, blocking, any size; never to oneself.
  virtual void send(int to, const void* data, std::int64_t bytes) = 0;
  virtual void receive(int from, void* data, std::int64_t bytes) = 0;
};

/// Control plane between the ranks' host threads: numbers, texts, results to verify. Its calls are
/// collective.
class RankControl : public RankMessages {
 public:
  virtual double max(double value) = 0;
  virtual double sum(double value) = 0;
  /// Returns rank 0's value on every rank.
  virtual double broadcast(double value) = 0;
  virtual std::string broadcast(const std::string& text) = 0;
  /// Returns one entry per rank on rank 0, nothing elsewhere.
  virtual std::vector<double> gather(double value) = 0;
  virtual std::vector<std::string> gather(const std::string& text) = 0;
};

}  // namespace longca
