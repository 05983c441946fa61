#include "bench/record/record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "bench/record/metrics.h"
#include "bench/record/rfc3339.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/nearest.h"

namespace longca {
namespace {

using nlohmann::json;

/// In the order in which people read a record.
constexpr std::array<std::string_view, 14> kKeys = {
    "schema",    "key",           "case", "status", "reason", "metrics", "samples_ms",
    "rounds_ms", "rank_times_ms", "stop", "env",    "at",     "notes",   "trace"};
constexpr std::array<std::string_view, 3> kStops = {"", "converged", "time_limit"};
/// Written for a failure that says nothing of itself, such as a plug-in's.
constexpr std::string_view kNoReason = "no reason was given";

const json& required(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) throw_input_error("the key '{}' is missing", key);
  return *found;
}

void require_type(bool ok, std::string_view key, std::string_view wanted, const json& value) {
  if (!ok) throw_input_error("'{}' must be {}, but is {}", key, wanted, value.type_name());
}

std::string text_of(const json& value, std::string_view key) {
  require_type(value.is_string(), key, "a string", value);
  return value.get<std::string>();
}

std::string optional_text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? "" : text_of(*found, key);
}

const json* optional_object(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return nullptr;
  require_type(found->is_object(), key, "an object", *found);
  return &*found;
}

double number_of(const json& value, std::string_view key) {
  require_type(value.is_number(), key, "a number", value);
  return value.get<double>();
}

Status status_of(const json& object) {
  const std::string word = text_of(required(object, "status"), "status");
  const auto code = parse_status_code(word);
  if (!code) {
    std::vector<std::string> words;
    for (const auto& [known, name] : kStatusNames) words.emplace_back(name);
    throw_input_error("'status' is '{}', which is no status{}", word, suggestion(word, words));
  }
  return {*code, optional_text(object, "reason")};
}

std::string stop_of(const json& object) {
  std::string stop = optional_text(object, "stop");
  if (std::find(kStops.begin(), kStops.end(), stop) == kStops.end()) {
    throw_input_error("'stop' is '{}', but must be converged or time_limit", stop);
  }
  return stop;
}

std::string time_of_record(const json& object) {
  std::string at = optional_text(object, "at");
  if (!at.empty() && !is_rfc3339(at)) {
    throw_input_error("'at' is '{}', but must be a time of RFC 3339, such as 2026-05-01T10:00:00Z",
                      at);
  }
  return at;
}

std::vector<double> numbers_of(const json& value, std::string_view key) {
  require_type(value.is_array(), key, "an array", value);
  std::vector<double> numbers;
  numbers.reserve(value.size());
  for (const json& number : value) numbers.push_back(number_of(number, key));
  return numbers;
}

void require_time(double ms, std::string_view key) {
  if (ms < 0) throw_input_error("'{}' is {} ms, but no time is negative", key, ms);
}

std::vector<double> optional_times(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  std::vector<double> times = numbers_of(*found, key);
  for (const double time : times) require_time(time, key);
  return times;
}

std::vector<std::vector<double>> parsed_rounds(const json& object) {
  std::vector<std::vector<double>> rounds;
  const auto found = object.find("rounds_ms");
  if (found == object.end()) return rounds;
  require_type(found->is_array(), "rounds_ms", "an array", *found);
  for (const json& round : *found) {
    rounds.push_back(numbers_of(round, "rounds_ms"));
    for (const double time : rounds.back()) require_time(time, "rounds_ms");
  }
  return rounds;
}

void check_sizes_of_rounds(const Record& record) {
  if (record.rounds_ms.empty()) return;
  std::size_t times = 0;
  for (const auto& round : record.rounds_ms) times += round.size();
  if (times != record.samples_ms.size()) {
    throw_input_error("'rounds_ms' has {} in all, but 'samples_ms' has {}", counted(times, "time"),
                      record.samples_ms.size());
  }
}

/// Throws for a value below 0 of a metric of ours that has none there.
void check_sign(const std::string& name, double value) {
  const MetricInfo* known = find_metric(name);
  if (known == nullptr || known->may_be_negative) return;
  const std::string key = "metrics." + name;
  if (known->unit == "ms") return require_time(value, key);
  if (value < 0) throw_input_error("'{}' is {}, but is never negative", key, value);
}

std::map<std::string, double> metrics_of(const json& object) {
  std::map<std::string, double> metrics;
  for (const auto& [name, value] : object.items()) {
    const double number = number_of(value, "metrics." + name);
    check_sign(name, number);
    metrics[name] = number;
  }
  return metrics;
}

std::optional<DeviceTrace> trace_of(const json& object) {
  const json* found = optional_object(object, "trace");
  if (found == nullptr) return std::nullopt;
  DeviceTrace trace{numbers_of(required(*found, "t_ms"), "trace.t_ms"),
                    numbers_of(required(*found, "sm_clock_mhz"), "trace.sm_clock_mhz"),
                    numbers_of(required(*found, "power_w"), "trace.power_w")};
  if (trace.sm_clock_mhz.size() != trace.t_ms.size() || trace.power_w.size() != trace.t_ms.size()) {
    throw InputError("the lists of 'trace' differ in length");
  }
  for (const double time : trace.t_ms) require_time(time, "trace.t_ms");
  return trace;
}

void check_schema(const json& object) {
  require_type(object.is_object(), "record", "an object", object);
  const json& schema = required(object, "schema");
  if (schema != json(kRecordSchema)) {
    throw_input_error("'schema' is {}, but this program reads schema {}",
                      schema.dump(-1, ' ', false, json::error_handler_t::replace), kRecordSchema);
  }
}

void check_key(const json& object, const Case& c) {
  const std::string key = text_of(required(object, "key"), "key");
  if (key != c.key()) {
    throw_input_error("'key' is '{}', but the key of its case is '{}'", key, c.key());
  }
}

std::string name_of_non_finite(double value) {
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

void check_finite(std::span<const double> times, const Record& record) {
  for (const double time : times) {
    LONGCA_CHECK(std::isfinite(time), "a time of {} is {} ms", record.c.key(), time);
  }
}

}  // namespace

void to_json(json& out, const Record& record) {
  std::map<std::string, std::string> notes = record.notes;
  json metrics = json::object();
  for (const auto& [name, value] : record.metrics) {
    if (std::isfinite(value)) {
      metrics[name] = value;
    } else {
      notes[name] = name_of_non_finite(value);
    }
  }
  check_finite(record.samples_ms, record);
  check_finite(record.rank_times_ms, record);
  for (const auto& round : record.rounds_ms) check_finite(round, record);
  const bool gives_no_reason = !record.status.ok() && record.status.reason.empty();
  out = json{{"schema", kRecordSchema},
             {"key", record.c.key()},
             {"case", record.c},
             {"status", to_string(record.status.code)},
             {"reason", gives_no_reason ? kNoReason : record.status.reason},
             {"metrics", std::move(metrics)},
             {"samples_ms", record.samples_ms},
             {"stop", record.stop},
             {"env", record.env->is_null() ? json::object() : *record.env},
             {"at", record.at}};
  if (!record.rounds_ms.empty()) out["rounds_ms"] = record.rounds_ms;
  if (!record.rank_times_ms.empty()) out["rank_times_ms"] = record.rank_times_ms;
  if (!notes.empty()) out["notes"] = notes;
  if (record.trace) {
    out["trace"] = json{{"t_ms", record.trace->t_ms},
                        {"sm_clock_mhz", record.trace->sm_clock_mhz},
                        {"power_w", record.trace->power_w}};
  }
  for (const auto& [key, value] : record.more) out.emplace(key, value);
}

void from_json(const json& object, Record& record) {
  record = to_record(json(object));
}

Record to_record(json&& object) {
  check_schema(object);
  const json& c = required(object, "case");
  require_type(c.is_object(), "case", "an object", c);
  Record read;
  read.c = c.get<Case>();
  check_key(object, read.c);
  read.status = status_of(object);
  if (const json* metrics = optional_object(object, "metrics")) read.metrics = metrics_of(*metrics);
  read.samples_ms = optional_times(object, "samples_ms");
  read.rounds_ms = parsed_rounds(object);
  check_sizes_of_rounds(read);
  read.rank_times_ms = optional_times(object, "rank_times_ms");
  read.stop = stop_of(object);
  const bool has_env = optional_object(object, "env") != nullptr;
  read.env = has_env ? std::move(object.at("env")) : json::object();
  read.at = time_of_record(object);
  if (const json* notes = optional_object(object, "notes")) {
    for (const auto& [name, value] : notes->items()) {
      read.notes[name] = text_of(value, "notes." + name);
    }
  }
  read.trace = trace_of(object);
  for (auto& [key, value] : object.get_ref<json::object_t&>()) {
    if (std::ranges::find(kKeys, key) == kKeys.end()) read.more[key] = std::move(value);
  }
  return read;
}

std::string to_line(const Record& record) {
  const json object = record;
  nlohmann::ordered_json line;  // json itself sorts the keys
  for (const std::string_view key : kKeys) {
    if (const auto found = object.find(key); found != object.end()) line[std::string(key)] = *found;
  }
  for (const auto& [key, value] : record.more) line.emplace(key, value);
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::vector<Record> latest_records(std::span<const Record> records) {
  return latest_records(records, [](const Record& record) { return record.c.key(); });
}

std::vector<Record> latest_records(std::span<const Record> records,
                                   const std::function<std::string(const Record&)>& key_of) {
  std::vector<Record> latest;
  std::unordered_map<std::string, std::size_t> places;
  for (const Record& record : records) {
    const auto [place, is_new] = places.try_emplace(key_of(record), latest.size());
    if (is_new) {
      latest.push_back(record);
    } else {
      latest[place->second] = record;
    }
  }
  return latest;
}

}  // namespace longca
