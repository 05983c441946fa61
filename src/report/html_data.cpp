#include "report/html_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/counted.h"
#include "report/data/figures.h"
#include "report/data/ranking.h"
#include "report/data/unmeasured.h"
#include "report/html_cells.h"
#include "report/scheme_names.h"

namespace longca {
namespace {

using nlohmann::json;

json point_json(const FigurePoint& point, const HtmlCells& cells) {
  const auto number = [](const std::optional<double>& value) {
    return value ? short_number(*value, 5) : json();
  };
  json list = {short_number(point.x),       number(point.y),      cells.index_of(point.record),
               short_number(point.part, 5), number(point.stroke), number(point.diamond)};
  while (list.back().is_null() || (list.size() == 4 && list.back() == 0))
    list.erase(list.size() - 1);
  return list;
}

/// Writes a kind of cells: their problems and figures.
class KindWriter {
 public:
  KindWriter(const View& view, const FigureSet& set, const HtmlCells& cells)
      : view_(view), set_(set), cells_(cells) {
    for (std::size_t i = 0; i < set.series.size(); ++i) series_[set.series[i].name] = i;
    for (const Figure& figure : set.figures) {
      for (const FigurePanel& panel : figure.panels) {
        for (const FigureSeries& series : panel.series) {
          for (const FigurePoint& point : series.points) {
            series_of_[point.record] = series_.at(series.name);
          }
        }
      }
    }
  }

  json write() const {
    json kind = {{"kind", view_.over_ranks ? "ranks" : "devices"},
                 {"unit", view_.unit.name},
                 {"setting", join_axes(view_.common, " · ")},
                 {"axes", axes()}};
    write_problems(kind);
    write_rows(kind);
    kind["series"] = json::array();
    for (const SeriesStyle& style : set_.series) {
      kind["series"].push_back(
          {{"name", style.name}, {"color", style.color}, {"dark", style.dark}});
    }
    kind["figures"] = json::array();
    for (const Figure& figure : set_.figures) kind["figures"].push_back(figure_json(figure));
    return kind;
  }

 private:
  json axes() const {
    std::vector<SettingCells> settings;
    for (const ViewSection& section : view_.sections) {
      int cells = 0;
      for (const ViewGroup& group : section.groups) {
        for (const ViewRow& row : group.rows) {
          cells += static_cast<int>(std::count_if(row.passes.begin(), row.passes.end(),
                                                  [](const Record* r) { return r != nullptr; }));
        }
      }
      settings.push_back({section.setting, cells});
    }
    for (const Figure& figure : set_.figures) {
      for (const FigurePanel& panel : figure.panels) settings.push_back({panel.setting, 0});
    }
    json list = json::array();
    for (const ChoiceAxis& axis : make_choices(settings)) {
      list.push_back({{"name", axis.name}, {"values", axis.values}, {"chosen", axis.chosen}});
    }
    return list;
  }

  /// "8K", or over ranks "8K · 2 ranks".
  static std::string column_of(const ViewGroup& group) {
    std::string tokens = format_tokens(group.tokens);
    if (group.ranks == 0) return tokens;
    return fmt::format("{} · {}", tokens, counted(group.ranks, "rank"));
  }

  using Problem = std::pair<const ViewSection*, const ViewGroup*>;

  std::vector<Problem> groups_by_mask() const {
    std::vector<Problem> problems;
    for (const ViewSection& section : view_.sections) {
      for (const ViewGroup& group : section.groups) problems.emplace_back(&section, &group);
    }
    std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
      return mask_index(a.second->mask) < mask_index(b.second->mask);
    });
    return problems;
  }

  void write_problems(json& kind) const {
    std::map<std::pair<std::int64_t, int>, std::string> names;  // in the order of columns
    for (const ViewSection& section : view_.sections) {
      for (const ViewGroup& group : section.groups) {
        names[{group.tokens, group.ranks}] = column_of(group);
      }
    }
    std::vector<std::string> columns;
    json commands = json::array();
    for (const auto& [key, name] : names) {
      columns.push_back(name);
      commands.push_back(command_at(key.first, key.second));
    }
    json problems = json::array();
    for (const auto& [section, group] : groups_by_mask()) {
      const auto column = std::distance(names.begin(), names.find({group->tokens, group->ranks}));
      json problem = {{"mask", group->mask},
                      {"column", column},
                      {"tokens", group->tokens},
                      {"setting", axes_json(section->setting)}};
      if (!group->setting.empty()) problem["title"] = group->title();
      if (group->ranks > 0) problem["ranks"] = group->ranks;
      for (const RankedWork work : kWorks) {
        if (!was_run(*group, work)) problem["unmeasured"].push_back(to_string(work));
      }
      for (const RankedWork work : kWorks) add_ranking(problem, work, rank(*group, work));
      problems.push_back(std::move(problem));
    }
    kind["columns"] = std::move(columns);
    kind["column_commands"] = std::move(commands);
    kind["problems"] = std::move(problems);
  }

  /// What measures a problem without a cell: its row's command with its column's.
  void write_rows(json& kind) const {
    kind["rows"] = json::array();
    for (const OverviewRow& row : overview_rows(view_)) {
      kind["rows"].push_back({{"title", row.group->title()},
                              {"setting", axes_json(row.section->setting)},
                              {"command", row.command}});
    }
  }

  void add_ranking(json& problem, RankedWork of_work, const Ranking& ranking) const {
    if (ranking.rows.empty()) return;
    const std::string work(to_string(of_work));
    json tied = json::array();
    for (const RankedRow& row : ranking.rows) {
      if (!row.is_first) continue;
      const Record* record = row.record;
      tied.push_back({series_of_.at(record), cells_.index_of(record), short_number(row.time_ms, 4),
                      short_number(row.tflops * view_.unit.per_tflops, 4)});
    }
    problem[work] = {{"tied", std::move(tied)}};
    const RankedRow* next = ranking.next();
    const auto lead = ranking.lead();
    if (!lead) return;
    problem[work]["lead"] = short_number(*lead, 4);
    problem[work]["next"] = series_of_.at(next->record);
  }

  json figure_json(const Figure& figure) const {
    json object = {{"name", figure.name},
                   {"title", figure.title},
                   {"hint", figure.hint},
                   {"x", figure.x_title},
                   {"y", figure.y_title},
                   {"mark", to_string(figure.mark)},
                   {"shares_y", figure.shares_y},
                   {"is_error", figure.is_error},
                   {"x_min", short_number(figure.x_min)},
                   {"dashed", figure.dashed_means}};
    object["y_max"] = figure.y_max ? short_number(*figure.y_max) : json();
    object["panels"] = json::array();
    for (const FigurePanel& panel : figure.panels) object["panels"].push_back(panel_json(panel));
    return object;
  }

  json panel_json(const FigurePanel& panel) const {
    json object = {{"title", panel.title},
                   {"mask", panel.mask},
                   {"setting", axes_json(panel.setting)},
                   {"ticks", panel.ticks}};
    if (!panel.note.empty()) object["note"] = panel.note;
    object["series"] = json::array();
    for (const FigureSeries& series : panel.series) {
      json points = json::array();
      for (const FigurePoint& point : series.points) points.push_back(point_json(point, cells_));
      object["series"].push_back({{"series", series_.at(series.name)}, {"points", points}});
      if (series.is_dashed) object["series"].back()["dashed"] = true;
      if (!series.absent.empty()) object["series"].back()["absent"] = series.absent;
    }
    object["references"] = json::array();
    for (const FigureReference& line : panel.references) {
      json places = json::array();
      for (const auto& place : line.places) {
        places.push_back({short_number(place.x), short_number(place.y, 5)});
      }
      object["references"].push_back(
          {{"name", line.name}, {"dotted", line.is_dotted}, {"places", std::move(places)}});
    }
    return object;
  }

  const View& view_;
  const FigureSet& set_;
  const HtmlCells& cells_;
  std::map<std::string, std::size_t> series_;  // by name
  std::map<const Record*, std::size_t> series_of_;
};

}  // namespace

json html_data(const SplitRecords& records) {
  const View single = make_view(records.single);
  const View over_ranks = make_view(records.over_ranks);
  const Baselines baselines(records.single, records.over_ranks);
  const DenseComparison comparison = compare_with_dense(records.single);
  HtmlCells cells;
  cells.add(over_ranks, baselines, comparison);
  cells.add(single, baselines, comparison);
  json data = {{"kinds", json::array()}, {"marks", json::array()}};
  for (const StatusCode code : marked_statuses()) {
    data["marks"].push_back(
        {{"status", to_string(code)}, {"mark", status_mark(code)}, {"words", status_text(code)}});
  }
  if (!records.over_ranks.empty()) {
    const FigureSet set = make_rank_figures(over_ranks, records);
    json kind = KindWriter(over_ranks, set, cells).write();
    for (const std::string& setting : scheme_settings(records.over_ranks)) {
      kind["setting"] = kind["setting"].get<std::string>() + " · " + setting;
    }
    data["kinds"].push_back(std::move(kind));
  }
  if (!records.single.empty()) {
    const FigureSet set = make_device_figures(single, comparison);
    data["kinds"].push_back(KindWriter(single, set, cells).write());
  }
  data["cells"] = cells.write();
  return data;
}

}  // namespace longca
