#include "bench/ranks/rank_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

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

/// Runs one cell and sends its record; returns whether the ranks must end.
bool run_one(LineChannel& channel, RankRunner& runner, const Case& c, const CellOptions& options,
             bool is_root) {
  channel.send({{"stage", "set-up"}});
  try {
    const Record record = runner.run(c, options);
    const bool ends = runner.device_lost() || runner.is_spoilt();
    if (is_root) channel.send({{"record", record}, {"ends", ends}});
    return ends;
  } catch (const RankFailure& failure) {
    channel.send({{"failed", failure.what()}, {"status", to_string(failure.status().code)}});
    throw;
  }
}

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
  RankTeam* team = nullptr;
  std::unique_ptr<RankRunner> runner;  // null on a rank that the case does not use
  int ranks = 0;
  if (is_root) channel.send({{"ready", true}});
  while (const auto request = request_for_all(channel, all)) {
    const auto c = request->at("case").get<Case>();
    const auto options = request->at("options").get<CellOptions>();
    if (const int wanted = std::clamp(c.ranks.value_or(all.size()), 1, all.size());
        wanted != ranks) {
      ranks = wanted;
      runner.reset();
      team = teams.first(ranks);
      if (team != nullptr) runner = std::make_unique<RankRunner>(*team, send_stage, &watch);
    }
    if (runner && run_one(channel, *runner, c, options, is_root)) return RankEnd::spoilt;
  }
  return RankEnd::parent_gone;
}

}  // namespace longca
