#include "bench/ranks/rank_team.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "bench/cell/steps.h"

namespace longca {
namespace {

/// "oom:…"; empty for ok.
std::string as_text(const Status& status) {
  return status.ok() ? "" : fmt::format("{}:{}", to_string(status.code), status.reason);
}

Status status_from_text(const std::string& text) {
  const std::size_t colon = text.find(':');
  return {parse_status_code(text.substr(0, colon)).value(), text.substr(colon + 1)};
}

std::string first_refusal(const std::vector<std::string>& texts) {
  const auto first = std::ranges::find_if(texts, [](const auto& text) { return !text.empty(); });
  if (first == texts.end()) return "";
  if (std::ranges::all_of(texts, [&](const auto& text) { return text == *first; })) return *first;
  Status status = status_from_text(*first);
  status.reason = fmt::format("rank {}: {}", first - texts.begin(), status.reason);
  return as_text(status);
}

}  // namespace

void together(RankControl& control, std::string_view stage, const std::function<Status()>& step) {
  Status mine;
  try {
    mine = step();
  } catch (...) {
    mine = current_exception_status(stage);
  }
  if (control.max(mine.ok() ? 0 : 1) == 0) return;
  const std::string refusal = control.broadcast(first_refusal(control.gather(as_text(mine))));
  throw Refused(status_from_text(refusal));
}

}  // namespace longca
