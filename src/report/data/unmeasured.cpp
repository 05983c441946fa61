#include "report/data/unmeasured.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "report/data/repeat_command.h"

namespace longca {
namespace {

/// Texts, each once, as a comma list.
class CommaList {
 public:
  void add(const std::string& text) {
    if (std::ranges::find(texts_, text) == texts_.end()) texts_.push_back(text);
  }
  std::string text() const { return fmt::format("{}", fmt::join(texts_, ",")); }

 private:
  std::vector<std::string> texts_;
};

bool is_of_row(const ViewGroup& group, const OverviewRow& row) {
  return group.mask == row.group->mask && group.setting == row.group->setting;
}

const Record& first_of(const ViewRow& row) {
  return **std::ranges::find_if(row.passes, [](const Record* pass) { return pass != nullptr; });
}

std::string command_of(const OverviewRow& overview, const View& view) {
  constexpr std::string_view kOpen[] = {"tokens", "ranks", "pass", "shard", "factor"};
  CommaList kernels, schemes, passes;
  Record like;
  for (const ViewGroup& group : overview.section->groups) {
    if (!is_of_row(group, overview)) continue;
    for (const ViewRow& row : group.rows) {
      if (like.c.kernel.empty()) like = first_of(row);
      kernels.add(row.kernel);
      if (row.c().scheme) schemes.add(*row.c().scheme);
    }
  }
  for (const Pass pass : kPasses) {
    if (view.has(pass)) passes.add(std::string(to_string(pass)));
  }
  like.c.kernel = kernels.text();
  if (like.c.scheme) like.c.scheme = schemes.text();
  return command_but_for(like, kOpen) + " -a pass=" + passes.text();
}

}  // namespace

std::vector<OverviewRow> overview_rows(const View& view) {
  std::vector<OverviewRow> rows;
  for (const ViewSection& section : view.sections) {
    for (const ViewGroup& group : section.groups) {
      const auto is_its = [&](const OverviewRow& row) {
        return row.section == &section && is_of_row(group, row);
      };
      if (std::ranges::any_of(rows, is_its)) continue;
      rows.push_back({&section, &group, ""});
      rows.back().command = command_of(rows.back(), view);
    }
  }
  return rows;
}

bool was_run(const ViewGroup& group, RankedWork work) {
  const auto has = [&](Pass pass) {
    return std::ranges::any_of(group.rows,
                               [&](const ViewRow& row) { return row.pass(pass) != nullptr; });
  };
  if (work == RankedWork::forward) return has(Pass::forward);
  if (work == RankedWork::backward) return has(Pass::backward);
  return has(Pass::step) || (has(Pass::forward) && has(Pass::backward));
}

std::string command_at(std::int64_t tokens, int ranks) {
  std::string text = fmt::format(" -a tokens={}", tokens);
  if (ranks > 0) text += fmt::format(" -a ranks={}", ranks);
  return text;
}

}  // namespace longca
