#include "parallel/transport/rank_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace longca {
namespace {

struct Answer {
  StatusCode code = StatusCode::ok;
  int of_rank = -1;                ///< of a refusal; −1: of all ranks, or none refused
  std::array<char, 512> reason{};  ///< truncated, null-terminated
};

/// The first refusal among the ranks' answers, or ok.
Answer verdict_of(const std::vector<Answer>& answers) {
  const auto refusal =
      std::ranges::find_if(answers, [](const Answer& a) { return a.code != StatusCode::ok; });
  if (refusal == answers.end()) return {};
  Answer verdict = *refusal;
  const auto is_same = [&](const Answer& a) { return a.reason == verdict.reason; };
  if (!std::ranges::all_of(answers, is_same)) {
    verdict.of_rank = static_cast<int>(refusal - answers.begin());
  }
  return verdict;
}

}  // namespace

Support agree(RankMessages& control, const Support& mine) {
  Answer answer;
  answer.code = mine.code;
  mine.reason.copy(answer.reason.data(), answer.reason.size() - 1);
  const Answer verdict = let_first_decide(control, answer, verdict_of);
  const std::string reason = verdict.reason.data();
  if (verdict.of_rank < 0) return {verdict.code, reason};
  return {verdict.code, fmt::format("rank {}: {}", verdict.of_rank, reason)};
}

void throw_together(RankMessages& control, const Support& mine) {
  const Support all = agree(control, mine);
  if (all.code == StatusCode::oom) throw OutOfMemory(all.reason);
  if (!all.ok()) throw std::runtime_error(all.reason);
}

}  // namespace longca
