#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/cell/cell_runner.h"
#include "bench/launch/launcher.h"
#include "bench/launch/rank_session.h"
#include "bench/record/record.h"
#include "bench/run/stage_clock.h"

namespace longca {

/// One attempt at a cell with the ranks of one session.
class RankAttempt {
 public:
  enum class Result : std::uint8_t { recorded, interrupted, not_begun };

  /// `c.ranks` is set. `resident_limit`: bytes of host memory of each rank. Everything must outlive
  /// this object.
  RankAttempt(RankSession& session, const Case& c, const CellOptions& options,
              std::int64_t resident_limit);

  /// `not_begun`: the ranks ended before the cell's first stage, so that it may be tried again.
  Result run(const nlohmann::json& request, Record& record, std::string& output);
  /// The events of each rank, as write_trace takes them, of a cell that was traced. It need not be
  /// ok.
  std::vector<std::string> take_trace() { return std::move(trace_); }
  /// Whether the session serves no further cell.
  bool session_ended() const { return session_ended_; }

 private:
  Result wait_for_record(Record& record);
  bool take_message(const RankServer::Event& event, Record& record);
  void take_stage(int rank, const nlohmann::json& message);
  void take_trace(int rank, const nlohmann::json& events);
  Result bad_message(int rank, const std::string& what, Record& record);
  Result end(Record& record, StatusCode code, std::string reason);
  Result rank_gone(int rank, Record& record);
  void note_failure(int rank, const nlohmann::json& message);
  bool has_begun() const;
  std::string stage_of(int rank) const;
  std::vector<int> expired() const;
  std::vector<int> culprits(const std::vector<int>& late) const;
  std::vector<int> behind() const;
  std::string memory_fault() const;

  RankSession& session_;
  const Case& case_;
  const CellOptions& options_;
  const std::int64_t resident_limit_;
  std::vector<StageClock> clocks_;  ///< by rank
  std::set<int> waiting_;           ///< ranks that have waited long for others
  Status failed_;                   ///< of the first rank that could not go on, if any
  std::vector<std::string> trace_;
  std::string output_;
  bool session_ended_ = false;
};

}  // namespace longca
