#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "parallel/transport/communicator.h"

namespace longca {

/// RankControl over an MPI communicator of its own. Waits sleep (Wait::patient) except while a
/// large message is in flight.
class MpiControl : public RankControl {
 public:
  /// `comm` outlives this object.
  explicit MpiControl(MPI_Comm comm);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override;
  double max(double value) override;
  double sum(double value) override;
  double broadcast(double value) override;
  std::string broadcast(const std::string& text) override;
  std::vector<double> gather(double value) override;
  std::vector<std::string> gather(const std::string& text) override;
  void send(int to, const void* data, std::int64_t bytes) override;
  void receive(int from, void* data, std::int64_t bytes) override;

 private:
  double reduce(double value, MPI_Op operation);

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace longca
