#include "run_records.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <unordered_set>
#include <utility>

#include "bench/plugin_loader.h"
#include "bench/record/environment.h"
#include "bench/record/origin.h"
#include "bench/run/rounds.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/printable.h"
#include "mask/own_mask.h"

namespace longca {
namespace {

namespace fs = std::filesystem;

/// This process's arguments, from the system; the program without its folder, which means nothing
/// on another machine.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  if (!arguments.empty()) arguments.front() = fs::path(arguments.front()).filename().string();
  return arguments;
}

/// Where the masks of the user's own are, by name; pictures of them are drawn from there.
nlohmann::json own_masks(const Suite& suite) {
  nlohmann::json paths = nlohmann::json::object();
  const auto masks = suite.axes.find("mask");
  if (masks == suite.axes.end()) return paths;
  for (const std::string& name : masks->second) {
    if (const OwnMask* own = find_own_mask(name)) paths[name] = own->path.string();
  }
  return paths;
}

/// Throws InputError if the file has records of another machine, commit or plug-in.
void refuse_other_origins(const fs::path& path, std::span<const Record> records,
                          const nlohmann::json& env) {
  const Origin here = origin_of(env);
  for (const auto& [origin, cells] : origins_of(records)) {
    const std::string differs = difference(origin, here);
    if (differs.empty()) continue;
    throw_input_error("--resume would mix {} of {} with others, for {}: add --across to do so",
                      counted(cells, "cell"), path.string(), differs);
  }
}

/// Whether a cell is tried again: it was ended by a limit lower than the present one, or by one
/// that its record does not say.
bool is_worth_another_try(const Record& record, const RunLimits& limits) {
  if (record.status.code != StatusCode::timeout) return false;
  const nlohmann::json::json_pointer place("/limits/case_limit_s");
  if (!record.env->contains(place) || !record.env->at(place).is_number()) return true;
  return record.env->at(place).get<double>() < limits.case_limit_s;
}

/// Leaves out cells that lack rounds and were begun by another origin: rounds of two origins are
/// never joined, so that all rounds of these cells are measured anew.
void leave_out_foreign_rounds(const fs::path& path, int rounds, const nlohmann::json& env,
                              std::vector<Record>& finished) {
  const Origin here = origin_of(env);
  const auto left_out = std::erase_if(finished, [&](const Record& record) {
    return record.status.ok() && rounds_of_record(record) < static_cast<std::size_t>(rounds) &&
           !difference(origin_of(*record.env), here).empty();
  });
  if (left_out == 0) return;
  fmt::print(stderr,
             "longca: {} of {} lack{} rounds and {} begun elsewhere: all {} rounds are measured "
             "here\n",
             counted(left_out, "cell"), printable(path.string()), left_out == 1 ? "s" : "",
             left_out == 1 ? "was" : "were", rounds);
}

}  // namespace

RunRecords::RunRecords(std::vector<Record> finished) : records_(std::move(finished)) {
  for (std::size_t i = 0; i < records_.size(); ++i) {
    places_[records_[i].c.key()] = i;
    measured_ += rounds_of_record(records_[i]);
  }
  written_ = records_.size();
}

bool RunRecords::lacks(const Case& c, int round) const {
  const auto place = places_.find(c.key());
  if (place == places_.end()) return true;
  const Record& record = records_[place->second];
  return record.status.ok() && rounds_of_record(record) <= static_cast<std::size_t>(round);
}

const Record& RunRecords::add(const Record& round, bool in_rounds) {
  const auto [place, is_new] = places_.try_emplace(round.c.key(), records_.size());
  if (is_new) {
    records_.push_back(in_rounds ? with_round(Record{}, round) : round);
  } else {
    records_[place->second] = with_round(records_[place->second], round);
  }
  return records_[place->second];
}

void RunRecords::note_written() {
  written_ = records_.size();
  ++measured_;
}

nlohmann::json run_environment(const RecordArguments& arguments, const Suite& suite) {
  nlohmann::json env = collect_environment();
  env["argv"] = own_arguments();
  env["plugins"] = describe_plugins(arguments.plugins);
  if (nlohmann::json masks = own_masks(suite); !masks.empty()) env["masks"] = std::move(masks);
  env["limits"] = {{"time_limit_s", suite.limits.time_limit_s},
                   {"sample_budget_s", suite.limits.sample_budget_s},
                   {"case_limit_s", suite.limits.case_limit_s}};
  if (arguments.round_count() > 1) {
    env["rounds"] = {{"count", arguments.round_count()}, {"seed", std::random_device{}()}};
  }
  return env;
}

std::vector<Record> read_finished(const fs::path& path, const RecordArguments& arguments,
                                  const nlohmann::json& env, const RunLimits& limits,
                                  std::span<const Case> cases) {
  if (!fs::exists(path)) return {};
  std::vector<Record> finished = latest_records(read_records(path).records);
  if (!arguments.across) refuse_other_origins(path, finished, env);
  std::unordered_set<std::string> wanted;
  for (const Case& c : cases) wanted.insert(c.key());
  std::erase_if(finished, [&](const Record& record) {
    return !wanted.contains(record.c.key()) || is_worth_another_try(record, limits);
  });
  if (arguments.across) leave_out_foreign_rounds(path, arguments.round_count(), env, finished);
  return finished;
}

}  // namespace longca
