#include "parallel/transport/rank_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace longca {
namespace {

struct Answer {
  StatusCode code = StatusCode::ok;
  std::array<char, 512> reason{};  ///< truncated, null-terminated
};

}  // namespace

Support agree(RankMessages& control, const Support& mine) {
  Answer answer;
  answer.code = mine.code;
  mine.reason.copy(answer.reason.data(), answer.reason.size() - 1);
  const std::vector<Answer> answers = exchange_records(control, answer);
  const auto refusal =
      std::ranges::find_if(answers, [](const Answer& a) { return a.code != StatusCode::ok; });
  if (refusal == answers.end()) return {};
  const std::string reason = refusal->reason.data();
  const bool of_all =
      std::ranges::all_of(answers, [&](const Answer& a) { return reason == a.reason.data(); });
  return {refusal->code,
          of_all ? reason : fmt::format("rank {}: {}", refusal - answers.begin(), reason)};
}

void throw_together(RankMessages& control, const Support& mine) {
  const Support all = agree(control, mine);
  if (all.code == StatusCode::oom) throw OutOfMemory(all.reason);
  if (!all.ok()) throw std::runtime_error(all.reason);
}

}  // namespace longca
