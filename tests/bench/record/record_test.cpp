#include "bench/record/record.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <zlib.h>

#include <cmath>
#include <functional>
#include <limits>

#include "bench/expect_input_error.h"
#include "bench/random_case.h"
#include "bench/record/metrics.h"
#include "core/system_error.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Record example() {
  Record record;
  record.c.kernel = "flash";
  record.c.mask = "causal";
  record.c.tokens = 4096;
  record.c = canonical(record.c);
  record.metrics = {{"time_ms", 1.5}, {"tflops", 0.25}, {"error_o", 2e-7}};
  record.samples_ms = {1.4, 1.5, 1.6};
  record.stop = "converged";
  record.env = {{"version", "0.1.0"}, {"cpu", {{"model", "Example"}}}};
  record.at = "2026-05-01T10:00:00Z";
  return record;
}

Record failed(StatusCode code, std::string reason) {
  Record record = example();
  record.status = {code, std::move(reason)};
  record.metrics.clear();
  record.samples_ms.clear();
  record.stop.clear();
  return record;
}

Record parse_one(const std::string& line) {
  RecordFile file = parse_records(line + "\n", "file");
  EXPECT_EQ(file.records.size(), 1U);
  return file.records.at(0);
}

TEST(RecordFile, MayBeginWithAByteOrderMark) {
  const std::string line = to_line(example()) + '\n';
  const std::string mark = "\xef\xbb\xbf";
  const RecordFile file = parse_records(mark + line + line, "file");
  EXPECT_EQ(file.records.size(), 2U);
  EXPECT_EQ(file.whole_bytes, mark.size() + 2 * line.size());
}

/// Any double of JSON that a time can be: huge, tiny, never negative.
rc::Gen<double> finite_time() {
  return rc::gen::exec([] {
    const double mantissa = *rc::gen::inRange(0, 1000001) / 999.0;
    return std::ldexp(mantissa, *rc::gen::inRange(-1050, 1000));
  });
}

/// The samples in rounds of random sizes.
std::vector<std::vector<double>> in_rounds(const std::vector<double>& samples) {
  std::vector<std::vector<double>> rounds(1);
  for (const double sample : samples) {
    if (*rc::gen::arbitrary<bool>()) rounds.emplace_back();
    rounds.back().push_back(sample);
  }
  return rounds;
}

/// Any double of JSON, negative ones too.
rc::Gen<double> finite_number() {
  return rc::gen::exec([] {
    const double number = *finite_time();
    return *rc::gen::arbitrary<bool>() ? number : -number;
  });
}

Record random_record() {
  Record record;
  record.c = *random_case();
  record.status.code = *rc::gen::element(StatusCode::ok, StatusCode::oom, StatusCode::crash);
  record.status.reason = *rc::gen::string<std::string>();
  for (const MetricInfo& metric : metric_table()) {
    if (*rc::gen::arbitrary<bool>()) {
      record.metrics.emplace(metric.name,
                             metric.may_be_negative ? *finite_number() : *finite_time());
    }
  }
  record.samples_ms = *rc::gen::container<std::vector<double>>(finite_time());
  if (*rc::gen::arbitrary<bool>()) record.rounds_ms = in_rounds(record.samples_ms);
  record.rank_times_ms = *rc::gen::container<std::vector<double>>(finite_time());
  record.stop = *rc::gen::element<std::string>("", "converged", "time_limit");
  record.env = {{"argv", {*rc::gen::string<std::string>()}}};
  record.at = "2026-05-01T10:00:00Z";
  if (*rc::gen::arbitrary<bool>()) record.notes["lse"] = *rc::gen::string<std::string>();
  if (*rc::gen::arbitrary<bool>()) {
    const auto points = *rc::gen::inRange<std::size_t>(0, 5);
    const auto times = rc::gen::container<std::vector<double>>(points, finite_time());
    const auto list = rc::gen::container<std::vector<double>>(points, finite_number());
    record.trace = DeviceTrace{*times, *list, *list};
  }
  if (*rc::gen::arbitrary<bool>()) record.more["mine"] = {*rc::gen::string<std::string>(), nullptr};
  return record;
}

TEST(Record, HasTheKeysOfTheContractInOrder) {
  const std::string line = to_line(example());
  const auto object = nlohmann::ordered_json::parse(line);
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"schema", "key", "case", "status", "reason", "metrics",
                                            "samples_ms", "stop", "env", "at"}));
  EXPECT_EQ(object["schema"], 1);
  EXPECT_EQ(object["status"], "ok");
  EXPECT_EQ(object["case"]["tokens"], 4096);
  EXPECT_EQ(object["metrics"]["time_ms"], 1.5);
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(Record, OverRanksHasATimeOfEachRank) {
  Record record = example();
  record.rank_times_ms = {1.5, 1.25};
  const std::string line = to_line(record);
  EXPECT_EQ(json::parse(line)["rank_times_ms"], json({1.5, 1.25}));
  EXPECT_EQ(parse_one(line).rank_times_ms, record.rank_times_ms);
}

TEST(Record, OfSeveralRoundsHasTheSamplesOfEach) {
  Record record = example();
  record.rounds_ms = {{1.4, 1.5}, {1.6}};
  const std::string line = to_line(record);
  EXPECT_EQ(json::parse(line)["rounds_ms"], json::parse("[[1.4, 1.5], [1.6]]"));
  EXPECT_EQ(parse_one(line).rounds_ms, record.rounds_ms);
  EXPECT_LT(line.find("\"samples_ms\""), line.find("\"rounds_ms\""));
}

TEST(Record, RefusesRoundsThatAreNoTimes) {
  json object = json::parse(to_line(example()));
  for (const char* rounds : {"3", "[3]", R"([["a"]])", "[[1.5], [-1]]"}) {
    object["rounds_ms"] = json::parse(rounds);
    expect_input_error([&] { parse_one(object.dump()); }, "rounds_ms");
  }
}

TEST(Record, RoundsAreTogetherAsManyAsTheSamples) {
  json object = json::parse(to_line(example()));
  for (const char* rounds : {"[[1.4, 1.5], [1.6]]", "[[1.4, 1.5, 1.6], []]", "[]"}) {
    object["rounds_ms"] = json::parse(rounds);
    EXPECT_EQ(parse_one(object.dump()).samples_ms.size(), 3U) << rounds;
  }
  object["rounds_ms"] = json::parse("[[1.4, 1.5], [1.6, 1.7]]");
  expect_input_error([&] { parse_one(object.dump()); },
                     "'rounds_ms' has 4 times in all, but 'samples_ms' has 3");
  object["rounds_ms"] = json::parse("[[1.4]]");
  expect_input_error([&] { parse_one(object.dump()); }, "'rounds_ms' has 1 time in all, but");
}

TEST(Record, KeepsColumnsOfTheUsersOwn) {
  json object = json::parse(to_line(example()));
  object["team"] = {{"name", "a\nb"}, {"runs", {1, 2.5, nullptr}}};
  object["asked_by"] = "me";
  const Record read = parse_one(object.dump());
  EXPECT_EQ(read.more.size(), 2U);
  const std::string line = to_line(read);
  EXPECT_EQ(json::parse(line), object);
  EXPECT_LT(line.find("\"at\""), line.find("\"asked_by\"")) << "after the keys of the contract";
  EXPECT_EQ(to_line(latest_records(std::vector{example(), read}).at(0)), line);
}

TEST(Record, WhatWasNotMeasuredIsAbsent) {
  const json object = json::parse(to_line(failed(StatusCode::oom, "too big")));
  EXPECT_EQ(object["metrics"], json::object());
  EXPECT_FALSE(object.contains("notes"));
}

RC_GTEST_PROP(Record, ReadsBackWhatItWrote, ()) {
  // Invalid UTF-8 is replaced once; from then on a record is what it is.
  const Record once = parse_one(to_line(random_record()));
  const std::string line = to_line(once);
  RC_ASSERT(to_line(parse_one(line)) == line);
}

RC_GTEST_PROP(Record, KeepsEveryDigit, ()) {
  const Record record = random_record();
  const Record read = parse_one(to_line(record));
  RC_ASSERT(read.metrics == record.metrics);
  RC_ASSERT(read.samples_ms == record.samples_ms);
  RC_ASSERT(read.trace == record.trace);
  RC_ASSERT(read.c == record.c);
}

TEST(Record, MetricsThatAreNoNumbersBecomeNotes) {
  Record record = example();
  record.metrics["error_o"] = std::nan("");
  record.metrics["error_dq"] = std::numeric_limits<double>::infinity();
  record.metrics["error_dk"] = -std::numeric_limits<double>::infinity();
  const std::string line = to_line(record);
  EXPECT_EQ(line.find("null"), std::string::npos);
  const Record read = parse_one(line);
  EXPECT_FALSE(read.metrics.contains("error_o"));
  EXPECT_EQ(read.notes, (std::map<std::string, std::string>{
                            {"error_o", "nan"}, {"error_dq", "inf"}, {"error_dk", "-inf"}}));
}

TEST(Record, SamplesThatAreNoNumbersAreABug) {
  Record record = example();
  record.samples_ms.push_back(std::nan(""));
  EXPECT_THROW(to_line(record), InternalError);
}

TEST(Record, InvalidUtf8InAReasonIsReplaced) {
  const Record read =
      parse_one(to_line(failed(StatusCode::crash, "bad \xff\xfe byte, cut \xe2\x82")));
  EXPECT_EQ(read.status.reason, "bad \xef\xbf\xbd\xef\xbf\xbd byte, cut \xef\xbf\xbd");
}

TEST(Record, LineBreaksInAReasonStayInItsLine) {
  using std::string_literals::operator""s;
  const Record record = failed(StatusCode::crash, "two\nlines\r\n\0and more"s);
  EXPECT_EQ(record.status.reason.size(), 20);
  EXPECT_EQ(to_line(record).find('\n'), std::string::npos);
  EXPECT_EQ(parse_one(to_line(record)).status.reason, record.status.reason);
}

TEST(Record, UnknownSchemasAreRefusedByName) {
  json object = example();
  object["schema"] = 2;
  expect_input_error([&] { parse_one(object.dump()); },
                     "file:1: not a record of longca: 'schema' is 2");
  object["schema"] = "1";
  expect_input_error([&] { parse_one(object.dump()); }, "'schema' is \"1\"");
  object.erase("schema");
  expect_input_error([&] { parse_one(object.dump()); }, "'schema' is missing");
}

TEST(Record, AKeyThatIsNotItsCasesIsRefused) {
  json object = example();
  object["case"]["tokens"] = 8192;
  expect_input_error([&] { parse_one(object.dump()); }, "'key' is");
}

TEST(Record, FaultsAreNamedWithFileAndLine) {
  const std::string good = to_line(example()) + "\n";
  expect_input_error([&] { parse_records(good + "{}\n" + good, "a.jsonl"); },
                     "a.jsonl:2: not a record of longca: the key 'schema' is missing");
  expect_input_error([&] { parse_records(good + good + "nonsense\n", "a.jsonl"); },
                     "a.jsonl:3: not a record of longca: no valid JSON at column");
  expect_input_error([&] { parse_records("[1]\n", "a.jsonl"); }, "'record' must be an object");
  // The first one, however many lines there are and whatever comes behind it.
  std::string many;
  for (int i = 0; i < 300; ++i) many += good;
  const std::string faulty = many + "{}\n" + good + "nonsense\n";
  expect_input_error([&] { parse_records(faulty, "a.jsonl"); }, "a.jsonl:301: not a record");
  expect_input_error([&] { parse_records(faulty + std::string(kMaxRecordBytes + 1, 'x'), "a"); },
                     "a:301: not a record");
}

/// Every value of the object that `path` reaches, replaced by each of `replacements`.
void for_each_replacement(const json& object,
                          const std::function<void(const json&, const std::string&)>& visit) {
  const std::vector<json> replacements = {
      nullptr, true, -1, 1.5, 1e308, "x", json::array(), json::object(), json::array({nullptr})};
  std::vector<json::json_pointer> paths;
  const json flat = object.flatten();
  for (const auto& [path, value] : flat.items()) {
    for (json::json_pointer at(path); !at.empty(); at = at.parent_pointer()) paths.push_back(at);
  }
  for (const auto& path : paths) {
    for (const json& replacement : replacements) {
      json changed = object;
      changed[path] = replacement;
      visit(changed, path.to_string());
    }
  }
}

TEST(Record, WrongTypesAnywhereAreAnInputErrorOrARecord) {
  int refused = 0;
  json object = example();
  object["notes"] = {{"lse", "not returned"}};
  for_each_replacement(object, [&](const json& changed, const std::string& path) {
    try {
      parse_one(changed.dump());
    } catch (const InputError& error) {
      ++refused;
      EXPECT_THAT(error.what(), HasSubstr("file:1: ")) << path;
    }
  });
  EXPECT_GT(refused, 100);
}

TEST(Record, WrongTypesAreNamed) {
  const std::vector<std::pair<const char*, const char*>> faults = {
      {"/status", "'status' must be a string"},
      {"/reason", "'reason' must be a string"},
      {"/metrics", "'metrics' must be an object"},
      {"/metrics/time_ms", "'metrics.time_ms' must be a number"},
      {"/samples_ms", "'samples_ms' must be an array"},
      {"/samples_ms/1", "'samples_ms' must be a number"},
      {"/stop", "'stop' must be a string"},
      {"/env", "'env' must be an object"},
      {"/at", "'at' must be a string"},
      {"/case", "'case' must be an object"},
      {"/key", "'key' must be a string"}};
  for (const auto& [path, sentence] : faults) {
    json object = example();
    object[json::json_pointer(path)] = true;
    expect_input_error([&] { parse_one(object.dump()); }, sentence);
  }
}

TEST(Record, ATraceHasThreeListsOfOneLength) {
  json object = example();
  object["trace"] = {{"t_ms", {0, 20}}, {"sm_clock_mhz", {1980, 1965}}, {"power_w", {300, 650.5}}};
  EXPECT_EQ(parse_one(object.dump()).trace->power_w.at(1), 650.5);
  object["trace"]["power_w"] = json::array({300});
  expect_input_error([&] { parse_one(object.dump()); }, "lists of 'trace' differ in length");
  object["trace"].erase("t_ms");
  expect_input_error([&] { parse_one(object.dump()); }, "'t_ms' is missing");
  object["trace"]["t_ms"] = "0";
  expect_input_error([&] { parse_one(object.dump()); }, "'trace.t_ms' must be an array");
}

TEST(Record, UnknownWordsAreNamed) {
  json object = example();
  object["status"] = "fine";
  expect_input_error([&] { parse_one(object.dump()); }, "'status' is 'fine'");
  object["status"] = "ok";
  object["stop"] = "tired";
  expect_input_error([&] { parse_one(object.dump()); }, "'stop' is 'tired'");
}

TEST(Record, AFailureSaysWhy) {
  // A plug-in may say nothing.
  const Record silent = failed(StatusCode::unsupported, "");
  EXPECT_EQ(parse_one(to_line(silent)).status.reason, "no reason was given");
  EXPECT_EQ(parse_one(to_line(example())).status.reason, "");
}

TEST(Record, WasMadeAtATimeOfRfc3339) {
  json object = example();
  for (const char* at : {"yesterday", "2026-13-45T99:99:99Z", "2026-05-01"}) {
    object["at"] = at;
    expect_input_error([&] { parse_one(object.dump()); },
                       fmt::format("'at' is '{}', but must be a time of RFC 3339", at));
  }
  object["at"] = "2026-05-01T12:00:00+02:00";
  EXPECT_EQ(parse_one(object.dump()).at, object["at"]);
  object.erase("at");
  EXPECT_EQ(parse_one(object.dump()).at, "") << "unknown";
}

TEST(Record, NumbersBeyondADoubleAreRefused) {
  std::string line = to_line(example());
  line.replace(line.find("1.5"), 3, "1e999");
  expect_input_error([&] { parse_one(line); }, " is too large: the maximum is 1.7977e+308");
}

TEST(Record, ValuesThatNoAxisTakesAreRefused) {
  const std::vector<std::tuple<const char*, json, const char*>> faults = {
      {"heads_q", (std::int64_t{1} << 32) + 8, "\"heads_q\" is 4294967304, out of range"},
      {"heads_q", 1 << 20, "heads 1048576"},
      {"heads_q", -8, "heads"},
      {"heads_k", 0, "heads"},
      {"tokens", 0, "tokens 0 is too small"},
      {"tokens", std::int64_t{1} << 40, "tokens 1099511627776 is too large"},
      {"tokens", std::uint64_t{1} << 63, "\"tokens\" is 9223372036854775808, out of range"},
      {"head_dim", 4096, "dim 4096"},
      {"head_dim_v", 0, "dim 0 is too small"},
      {"head_dim_v", -1, "dim"},
      {"head_dim_v", 129, "dim 128:129: v of dimension 129 is larger than q and k of 128"},
      {"head_dim_v", 1.5, "\"head_dim_v\" is not a whole number"},
      {"seed", -1, "\"seed\" is -1, out of range"}};
  for (const auto& [key, value, sentence] : faults) {
    json object = example();
    object["case"][key] = value;
    expect_input_error([&] { parse_one(object.dump()); }, sentence);
  }
  Record blocks = example();
  blocks.c.mask = "block_sparse";
  blocks.c = canonical(blocks.c);
  json object = blocks;
  object["case"]["density"] = 7.5;
  expect_input_error([&] { parse_one(object.dump()); }, "density 7.5");
}

TEST(Record, RecordsOfOneEnvironmentShareIt) {
  Record other = example();
  other.env.own()["commit"] = "another";
  const std::string one = to_line(example()) + '\n';
  const auto records = parse_records(one + one + to_line(other) + '\n' + one, "f").records;
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(&*records[0].env, &*records[1].env);
  EXPECT_EQ(*records[0].env, *example().env);
  EXPECT_EQ(*records[2].env, *other.env);
  EXPECT_EQ(*records[3].env, *example().env);
}

TEST(Record, AnUnknownKeyInsideTheCaseIsRefused) {
  json object = example();
  object["case"]["tokans"] = 8192;
  expect_input_error([&] { parse_one(object.dump()); },
                     "the case has the unknown key 'tokans' (did you mean 'tokens'?)");
}

TEST(Record, NegativeTimesAreRefused) {
  for (const char* path : {"/metrics/time_ms", "/samples_ms/1"}) {
    json object = example();
    object[json::json_pointer(path)] = -1.5;
    expect_input_error([&] { parse_one(object.dump()); }, "is -1.5 ms, but no time is negative");
  }
  // The difference of two medians is no time.
  json object = example();
  object["metrics"]["exposed_comm_ms"] = -0.01;
  EXPECT_EQ(parse_one(object.dump()).metrics.at("exposed_comm_ms"), -0.01);
}

TEST(Record, MetricsBelowZeroAreRefused) {
  for (const MetricInfo& metric : metric_table()) {
    json object = example();
    object["metrics"][metric.name] = -0.5;
    const std::string name(metric.name);
    if (metric.may_be_negative) {
      EXPECT_EQ(parse_one(object.dump()).metrics.at(name), -0.5);
    } else {
      expect_input_error([&] { parse_one(object.dump()); },
                         fmt::format("'metrics.{}' is -0.5", name));
    }
  }
  json object = example();
  object["metrics"]["tflops"] = -0.5;
  expect_input_error([&] { parse_one(object.dump()); },
                     "'metrics.tflops' is -0.5, but is never negative");
  object["metrics"].erase("tflops");
  object["metrics"]["mine"] = -0.5;
  EXPECT_EQ(parse_one(object.dump()).metrics.at("mine"), -0.5);
}

TEST(Record, RepeatedKeysAreRefusedAtAnyDepth) {
  const std::string line = to_line(example());
  for (const auto& [key, again] :
       {std::pair{"\"status\":\"ok\"", "\"status\":\"ok\",\"status\":\"wrong\""},
        {"\"tokens\":4096", "\"tokens\":4096,\"tokens\":8192"},
        {"\"model\":\"Example\"", "\"model\":\"x\",\"model\":\"y\""}}) {
    std::string twice = line;
    const auto at = twice.find(key);
    ASSERT_NE(at, twice.npos) << key;
    twice.replace(at, std::string(key).size(), again);
    expect_input_error([&] { parse_one(twice); }, "is there twice");
  }
}

TEST(Record, DeepNestingIsRefusedBeforeItHurts) {
  const int depth = 200000;
  const std::string deep = std::string(depth, '[') + std::string(depth, ']');
  std::string line = to_line(example());
  line.replace(line.find("\"Example\""), 9, deep);
  expect_input_error([&] { parse_one(line); }, "nested deeper than 64");
}

RC_GTEST_PROP(Record, AnyBytesAreRecordsOrAnInputError, ()) {
  std::string line = to_line(example());
  const int changes = *rc::gen::inRange(1, 6);
  for (int i = 0; i < changes; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, line.size());
    line[at] = *rc::gen::arbitrary<char>();
  }
  try {
    parse_records(line + "\n", "file");
  } catch (const InputError&) {
    RC_TAG("refused");
  }
}

TEST(RecordFile, CutAtEveryByteKeepsWhatIsWhole) {
  const std::vector<std::string> lines = {to_line(example()),
                                          to_line(failed(StatusCode::oom, "caf\xc3\xa9"))};
  const std::string text = lines[0] + "\n" + lines[1] + "\n";
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const RecordFile file = parse_records(std::string_view(text).substr(0, size), "file");
    // A line counts from its last byte on, its newline or not.
    const std::size_t whole = (size >= lines[0].size()) + (size >= text.size() - 1);
    ASSERT_EQ(file.records.size(), whole) << size;
    const bool between = size == 0 || size == lines[0].size() || size == lines[0].size() + 1 ||
                         size >= text.size() - 1;
    ASSERT_EQ(file.torn, !between) << size;
    ASSERT_EQ(file.whole_bytes, file.torn ? (whole == 0 ? 0 : lines[0].size() + 1) : size) << size;
  }
}

TEST(RecordFile, MissingFilesAndFoldersAreNamed) {
  const TempDirectory folder;
  expect_input_error([&] { read_records(folder / "none.jsonl"); }, "none.jsonl: No such file");
  expect_input_error([&] { read_records(folder.path()); }, "Is a directory");
}

void write_compressed(const std::filesystem::path& path, const std::string& text) {
  const gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
            static_cast<int>(text.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
}

TEST(RecordFile, CompressedFilesAreRead) {
  const TempDirectory folder;
  const std::string line = to_line(example()) + '\n';
  write_compressed(folder / "a.jsonl.gz", line + line);
  EXPECT_EQ(read_records(folder / "a.jsonl.gz").records.size(), 2);
}

TEST(RecordFile, MembersOfGzipFollowEachOtherAndNothingElseDoes) {
  const TempDirectory folder;
  const std::string line = to_line(example()) + '\n';
  write_compressed(folder / "a.jsonl.gz", line);
  const std::string packed = read_file(folder / "a.jsonl.gz");
  write_file(folder / "two.jsonl.gz", packed + packed);
  EXPECT_EQ(read_records(folder / "two.jsonl.gz").records.size(), 2);
  const std::string where = std::to_string(packed.size());
  for (const std::string& behind : {line, line + packed, std::string("x"), std::string("\x1f")}) {
    write_file(folder / "mix.jsonl.gz", packed + behind);
    expect_input_error([&] { read_records(folder / "mix.jsonl.gz"); },
                       "mix.jsonl.gz: what follows its first " + where + " bytes");
  }
  write_file(folder / "padded.jsonl.gz", packed + std::string(70'000, '\0'));
  EXPECT_EQ(read_records(folder / "padded.jsonl.gz").records.size(), 1);
  write_file(folder / "cut.jsonl.gz", packed + packed.substr(0, packed.size() / 2));
  expect_input_error([&] { read_records(folder / "cut.jsonl.gz"); }, "unexpected end of file");
}

TEST(RecordFile, ACutCompressedFileIsRefused) {
  const TempDirectory folder;
  const std::filesystem::path path = folder / "a.jsonl.gz";
  write_compressed(path, to_line(example()) + '\n');
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  expect_input_error([&] { read_records(path); },
                     "cannot read " + path.string() + ": unexpected end of file");
}

TEST(RecordFile, EveryLineIsARecord) {
  const std::string line = to_line(example()) + '\n';
  expect_input_error([&] { parse_records(line + "my notes", "file"); }, "file:2: not a record");
  expect_input_error([&] { parse_records(line + "my notes\n" + line, "file"); },
                     "file:2: not a record");
  EXPECT_TRUE(parse_records(line + R"({"schema":1,"ke)", "file").torn);
}

/// Only what a killed run can have left is torn: other last lines are somebody's, and named.
TEST(RecordFile, ALastLineThatIsWrongIsNotTorn) {
  const std::string whole = to_line(example());
  const std::string beginning = whole.substr(0, whole.size() - 1);
  const auto file = [&](const std::string& last) { return fmt::format("{}\n{}", whole, last); };
  for (const std::string_view wrong : {"{}{}", "{}\r{}", "{} seen", "{}}}", "{}\""}) {
    const std::string last = fmt::format(fmt::runtime(wrong), whole, whole);
    expect_input_error([&] { parse_records(file(last), "file"); }, "file:2: not a record");
  }
  for (const std::string_view wrong :
       {R"(,"mine":"my "quoted" remark"})", R"(,"x":NaN)", ",\"x\":\"\xff\"", R"(,"x":1e400,)"}) {
    const std::string last = fmt::format("{}{}", beginning, wrong);
    expect_input_error([&] { parse_records(file(last), "file"); }, "file:2: not a record");
  }
  for (const std::string_view cut : {"", ",", R"(,"\u00)", ",\"caf\xc3", R"(,"x":tr)"}) {
    const std::string last = fmt::format("{}{}", beginning, cut);
    EXPECT_TRUE(parse_records(file(last), "file").torn) << last;
  }
}

TEST(RecordFile, AStatusIsSuggested) {
  nlohmann::json record = nlohmann::json::parse(to_line(example()));
  record["status"] = "crahs";
  expect_input_error([&] { parse_records(record.dump() + "\n", "file"); },
                     "'status' is 'crahs', which is no status (did you mean 'crash'?)");
}

TEST(RecordFile, EndsOnAFileWithoutEnd) {
  expect_input_error([] { read_records("/dev/zero"); },
                     "/dev/zero:1: not a record of longca: the line is longer than 64 MiB");
}

TEST(RecordFile, ACompressedFileDoesNotGrowWithoutLimit) {
  const TempDirectory folder;
  const std::filesystem::path path = folder / "bomb.jsonl.gz";
  const gzFile file = gzopen(path.c_str(), "wb9");
  const std::string blank(1 << 20, '\n');
  for (int mib = 0; mib < 100; ++mib) {
    ASSERT_EQ(gzwrite(file, blank.data(), 1 << 20), 1 << 20);
  }
  ASSERT_EQ(gzclose(file), Z_OK);
  expect_input_error([&] { read_records(path); },
                     "bomb.jsonl.gz unpacks to more than 200 times its size");
}

TEST(RecordFile, WhatMayNotBeReadIsTheSystemsFault) {
  const TempDirectory folder;
  std::filesystem::create_symlink("loop.jsonl", folder / "loop.jsonl");
  EXPECT_THROW(read_records(folder / "loop.jsonl"), SystemError);
}

TEST(RecordFile, TheLastRecordOfAKeyCountsAtTheFirstsPlace) {
  Record other = example();
  other.c.tokens = 1;
  const std::vector<Record> records = {example(), other, failed(StatusCode::crash, "again")};
  const std::vector<Record> latest = latest_records(records);
  ASSERT_EQ(latest.size(), 2U);
  EXPECT_EQ(latest[0].status.reason, "again");
  EXPECT_EQ(latest[1].c.tokens, 1);
}

TEST(Metrics, AreFoundByName) {
  for (const MetricInfo& metric : metric_table()) EXPECT_EQ(find_metric(metric.name), &metric);
  EXPECT_EQ(find_metric("speed"), nullptr);
}

}  // namespace
}  // namespace longca::testing
