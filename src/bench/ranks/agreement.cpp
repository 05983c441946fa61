#include "bench/ranks/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <vector>

#include "core/memory.h"

namespace longca {
namespace {

/// "oom: …"; nothing for ok.
std::string as_text(const Status& status) {
  return status.ok() ? "" : fmt::format("{}:{}", to_string(status.code), status.reason);
}

Status from_text(const std::string& text) {
  const std::size_t colon = text.find(':');
  return {parse_status_code(text.substr(0, colon)).value(), text.substr(colon + 1)};
}

std::string first_refusal(const std::vector<std::string>& texts) {
  const auto first = std::ranges::find_if(texts, [](const auto& text) { return !text.empty(); });
  if (first == texts.end()) return "";
  if (std::ranges::all_of(texts, [&](const auto& text) { return text == *first; })) return *first;
  Status status = from_text(*first);
  status.reason = fmt::format("rank {}: {}", first - texts.begin(), status.reason);
  return as_text(status);
}

}  // namespace

Status status_of(std::string_view stage, const std::function<Status()>& step) {
  try {
    return step();
  } catch (const OutOfMemory& error) {
    return {StatusCode::oom, fmt::format("in {}: {}", stage, error.what())};
  } catch (const std::bad_alloc&) {
    return {StatusCode::oom, fmt::format("in {}: an allocation was refused", stage)};
  } catch (const std::exception& error) {
    return {StatusCode::crash, fmt::format("threw in {}: {}", stage, error.what())};
  } catch (...) {
    return {StatusCode::crash, fmt::format("threw in {}, not a std::exception", stage)};
  }
}

void together(RankControl& control, std::string_view stage, const std::function<Status()>& step) {
  const Status mine = status_of(stage, step);
  if (control.max(mine.ok() ? 0 : 1) == 0) return;
  const std::string said = control.broadcast(first_refusal(control.gather(as_text(mine))));
  throw Refused(from_text(said));
}

}  // namespace longca
