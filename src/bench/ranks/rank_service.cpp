#include "bench/ranks/rank_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "bench/cell/steps.h"
#include "bench/ranks/exchange_times.h"
#include "bench/ranks/rank_runner.h"

namespace longca {
namespace {

/// The first rank whose text differs from rank 0's.
std::optional<std::size_t> first_other(const std::vector<std::string>& texts) {
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] != texts.front()) return rank;
  }
  return std::nullopt;
}

/// The parent's next request, on all ranks; nothing if the parent is gone. Waiting ranks sleep.
std::optional<nlohmann::json> request_for_all(LineChannel& channel, RankControl& control) {
  std::string text;
  if (control.rank() == 0) {
    try {
      if (const auto message = channel.receive()) text = message->dump();
    } catch (const BadMessage&) {
      // A kernel has read from the socket, so that lines are lost: ends as if the parent were gone.
    }
  }
  text = control.broadcast(text);
  if (text.empty()) return std::nullopt;
  return nlohmann::json::parse(text);
}

/// Runs one cell and sends its trace, if any, and its record; returns whether the ranks must end.
bool run_one(LineChannel& channel, RankRunner& runner, const Case& c, const CellOptions& options,
             bool is_root) {
  channel.send({{"stage", "set-up"}});
  try {
    const Record record = runner.run(c, options);
    const bool ends = runner.device_lost() || runner.is_spoilt();
    for (const std::string& events : runner.take_trace()) {
      channel.send({{"trace", nlohmann::json::parse(events)}});
    }
    if (is_root) channel.send({{"record", record}, {"ends", ends}});
    return ends;
  } catch (const RankFailure& failure) {
    channel.send({{"failed", failure.what()}, {"status", to_string(failure.status().code)}});
    throw;
  }
}

/// Times exchanges over all ranks and sends their times, or why there are none.
void run_exchanges(LineChannel& channel, RankTeam& team, const nlohmann::json& request) {
  std::string stage;
  const StageListener listener = [&](std::string_view next) {
    stage = next;
    channel.send({{"stage", next}});
  };
  nlohmann::json answer;
  try {
    answer["times"] =
        time_exchanges(team, request.at("exchanges").get<std::vector<TimedExchange>>(),
                       request.at("limits").get<RunLimits>(), listener);
  } catch (const Refused& refused) {
    answer = {{"none", refused.what()}, {"status", to_string(refused.status().code)}};
  } catch (...) {
    const Status status = current_exception_status(stage);
    channel.send({{"failed", status.reason}, {"status", to_string(status.code)}});
    throw;
  }
  if (team.control.rank() == 0) channel.send(answer);
}

/// The ranks of the current request as a team, and what runs cells on it; both null on a rank that
/// it does not use.
class CurrentTeam {
 public:
  CurrentTeam(RankTeams& teams, const StageListener& stage, StateWatch& watch)
      : teams_(teams), stage_(stage), watch_(watch) {}

  /// Collective over all ranks.
  void make(int ranks) {
    if (ranks == ranks_) return;
    ranks_ = ranks;
    runner_.reset();
    team_ = teams_.first(ranks);
    if (team_ != nullptr) runner_ = std::make_unique<RankRunner>(*team_, stage_, &watch_);
  }
  RankTeam* team() { return team_; }
  RankRunner* runner() { return runner_.get(); }

 private:
  RankTeams& teams_;
  const StageListener& stage_;
  StateWatch& watch_;
  RankTeam* team_ = nullptr;
  std::unique_ptr<RankRunner> runner_;
  int ranks_ = 0;
};

}  // namespace

std::string disagreement(RankControl& control, const std::string& commit,
                         const std::string& suite_hash) {
  const std::vector<std::string> commits = control.gather(commit);
  const std::vector<std::string> hashes = control.gather(suite_hash);
  std::string sentence;
  if (const auto rank = first_other(commits)) {
    sentence = fmt::format("rank {} runs commit {} of longca, but rank 0 runs {}", *rank,
                           commits[*rank], commits.front());
  } else if (const auto other = first_other(hashes)) {
    sentence = fmt::format("rank {} was given another suite than rank 0", *other);
  }
  return control.broadcast(sentence);
}

RankEnd run_rank(LineChannel& channel, RankTeams& teams, StateWatch& watch) {
  RankControl& all = teams.all();
  const bool is_root = all.rank() == 0;
  const StageListener send_stage = [&](std::string_view stage) {
    channel.send({{"stage", stage}});
  };
  CurrentTeam current(teams, send_stage, watch);
  if (is_root) channel.send({{"ready", true}});
  while (const auto request = request_for_all(channel, all)) {
    if (request->contains("exchanges")) {
      current.make(all.size());
      run_exchanges(channel, *current.team(), *request);
      continue;
    }
    const auto c = request->at("case").get<Case>();
    const auto options = request->at("options").get<CellOptions>();
    current.make(std::clamp(c.ranks.value_or(all.size()), 1, all.size()));
    RankRunner* const runner = current.runner();
    if (runner != nullptr && run_one(channel, *runner, c, options, is_root)) return RankEnd::spoilt;
  }
  return RankEnd::parent_gone;
}

}  // namespace longca
