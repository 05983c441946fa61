#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/launch/launcher.h"
#include "bench/launch/rank_session.h"
#include "bench/launch/scratch_folder.h"
#include "bench/ranks/exchange_times.h"
#include "bench/suite/suite.h"
#include "core/status.h"

namespace longca {

/// Times exchanges over ranks of this host, which it starts as LaunchRunner does.
class ExchangeRunner {
 public:
  /// Starts `ranks` ranks; mpirun and longca-rank are there (rank_machine.h). Throws SystemError
  /// that says why they could not start.
  ExchangeRunner(int ranks, const RunLimits& limits);
  ~ExchangeRunner();
  ExchangeRunner(const ExchangeRunner&) = delete;
  ExchangeRunner& operator=(const ExchangeRunner&) = delete;

  /// Of one transport. Not ok if the ranks cannot use the transport, or a byte that came was wrong.
  struct Answer {
    Status status;
    std::vector<ExchangeMs> times;  ///< in the order of the exchanges
  };
  /// Throws SystemError that names a rank that ended or hangs; then this object serves no further
  /// call. Once a signal has come (InterruptGuard), answers with nothing.
  Answer run(std::span<const TimedExchange> exchanges);

 private:
  bool note_failure(const nlohmann::json& message);
  bool take(const RankServer::Event& event, std::size_t count, Answer& answer);
  [[noreturn]] void fail(int rank, std::string reason);
  [[noreturn]] void rank_gone(int rank);

  RunLimits limits_;
  ScratchFolder scratch_;
  std::unique_ptr<RankSession> session_;
  std::string stage_;   ///< of rank 0
  std::string failed_;  ///< of the first rank that could not go on
};

}  // namespace longca
