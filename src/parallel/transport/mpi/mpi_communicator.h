#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "core/memory.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// Messages between host memories as persistent MPI requests. A plan matches sends and receives of
/// two ranks by their order alone, which MPI preserves.
class MpiCommunicator : public Communicator {
 public:
  /// Collective over `comm`, which it duplicates.
  explicit MpiCommunicator(MPI_Comm comm);
  /// Collective.
  ~MpiCommunicator() override;
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  std::string name() const override { return "mpi"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string version() const override;
  void* allocate(std::int64_t bytes) override;
  int prepare(const TransferGroup& group) override;
  void start(int group, Stream stream) override;
  void finish(int group) override;
  void progress() override;
  void barrier(Stream stream) override;

 private:
  struct Prepared {
    std::vector<MPI_Request> requests;  ///< receives, then sends
    std::int64_t bytes_to_others = 0;
    bool in_flight = false;
  };
  Prepared& prepared(int group);

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  std::vector<Buffer> memory_;
  std::vector<Prepared> groups_;
};

}  // namespace longca
