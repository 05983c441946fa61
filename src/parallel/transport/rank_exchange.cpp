#include "parallel/transport/rank_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace longca {
namespace {

struct Answer {
  StatusCode code = StatusCode::ok;
  int of_rank = -1;                ///< of a refusal; −1: of all ranks, or none refused
  std::array<char, 512> reason{};  ///< truncated, null-terminated
};

/// The beginning of a UTF-8 text that fits into `bytes`, without a character that is cut.
std::string_view beginning_of(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  std::size_t end = bytes;
  while (end > 0 && bytes - end < 3 && continues(end)) --end;
  return text.substr(0, continues(end) ? bytes : end);
}

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
  beginning_of(mine.reason, answer.reason.size() - 1)
      .copy(answer.reason.data(), answer.reason.size());
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
