#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "parallel/plan/plan.h"

namespace longca {

/// One message as a transport sees it: `rows` pieces of `row_bytes`, `stride_bytes` apart.
/// Contiguous if the two are equal. Both ends have the same rows and row_bytes; strides may differ.
struct Transfer {
  int peer = 0;
  void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
  std::int64_t stride_bytes = 0;

  std::int64_t bytes() const { return rows * row_bytes; }
};

/// What an exchange is to a transport. Empty messages are never handed over.
struct TransferGroup {
  Pattern pattern = Pattern::send_receive;
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;
  /// This rank computes nothing meanwhile: a transport may use what computing would.
  bool alone = false;
  /// Where its messages land is not used from `expect` to `start`: they may land in between.
  bool lands_early = false;
};

/// Moves messages between the ranks of one case: MPI for the CPU, NCCL or copies to a peer's memory
/// for GPUs. Every rank makes the matching calls in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual std::string name() const = 0;  ///< of the transport: "mpi", "nccl", "peer"
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Of the library, for the record.
  virtual std::string version() const = 0;

  /// Memory that messages may start and end in, zeroed, from the device's tracker; every rank calls
  /// it, in the same order, with sizes of its own. A transport that must know its buffers
  /// beforehand exchanges their handles here. Lives as long as the communicator.
  virtual void* allocate(std::int64_t bytes) = 0;

  /// Makes a group known that `start` will be called with, in the order of the calls: staging
  /// memory, handles. Returns its number.
  virtual int prepare(const TransferGroup& group) = 0;
  /// The groups that `start` will be called with next, in this order, and all of them before the
  /// next call: at the beginning of a pass. Queued on `stream`, on a GPU, like `start`. Ranks need
  /// not call it.
  virtual void expect(std::span<const int> /*groups*/, Stream /*stream*/) {}
  /// Starts a prepared group. On a GPU everything is queued on `stream` and the host does not wait.
  /// On the CPU the messages are posted; `finish` waits for them.
  virtual void start(int group, Stream stream) = 0;
  /// Returns when the group's messages have arrived and left; nothing to do on a GPU, where the
  /// stream says it.
  virtual void finish(int group) = 0;
  /// Lets messages go on, where that needs the host (between two steps of computing).
  virtual void progress() {}

  /// All ranks wait for each other: on a GPU on the stream, in device time; the host does not wait.
  virtual void barrier(Stream stream) = 0;

  /// Bytes that `start` has handed to the transport for other ranks since the last reset.
  std::int64_t bytes_sent() const { return bytes_sent_; }
  void reset_bytes_sent() { bytes_sent_ = 0; }

 protected:
  void count_sent(std::int64_t bytes) { bytes_sent_ += bytes; }

 private:
  std::int64_t bytes_sent_ = 0;
};

/// What ranks tell each other beside the work, on the host: figures, sentences, results to verify.
/// Collective calls; every rank makes the same ones.
class RankControl {
 public:
  virtual ~RankControl() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  virtual double max(double value) = 0;
  virtual double sum(double value) = 0;
  /// Rank 0's value.
  virtual double broadcast(double value) = 0;
  virtual std::string broadcast(const std::string& text) = 0;
  /// On rank 0 one entry per rank; elsewhere empty.
  virtual std::vector<double> gather(double value) = 0;
  virtual std::vector<std::string> gather(const std::string& text) = 0;
  /// Point to point, blocking, any size; to itself is not allowed.
  virtual void send(int to, const void* data, std::int64_t bytes) = 0;
  virtual void receive(int from, void* data, std::int64_t bytes) = 0;
};

}  // namespace longca
