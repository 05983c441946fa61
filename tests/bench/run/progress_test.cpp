#include "bench/run/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "core/format_figure.h"

namespace longca::testing {
namespace {

Record example(StatusCode code) {
  Record record;
  record.c.kernel = "naive";
  record.c.mask = "causal";
  record.c.tokens = 4096;
  record.status.code = code;
  if (code == StatusCode::ok)
    record.metrics = {{"time_ms", 3.25}, {"tflops", 0.5}, {"error_o", 0.002}};
  if (code != StatusCode::ok) record.status.reason = "for a reason";
  return record;
}

std::string shown(Progress::Style style, const std::vector<StatusCode>& codes) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  {
    Progress progress(codes.size(), style, file.get());
    for (const StatusCode code : codes) {
      const Record record = example(code);
      progress.started(record.c);
      progress.finished(record, "");
    }
  }
  std::string text(4096, '\0');
  std::rewind(file.get());
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  return text;
}

TEST(Progress, ALinePerCellWhereThereIsNoTerminal) {
  EXPECT_EQ(shown(Progress::Style::lines, {StatusCode::ok, StatusCode::crash}),
            "[1/2] naive causal 4096 forward: ok, 3.25 ms, 500.0 GFLOP/s\n"
            "[2/2] naive causal 4096 forward: crash: for a reason\n");
}

TEST(Progress, ABarShowsTimeLeftAndKeepsFailures) {
  const std::string text =
      shown(Progress::Style::bar, {StatusCode::ok, StatusCode::unsupported, StatusCode::wrong});
  EXPECT_THAT(text, ::testing::HasSubstr("[----"));
  EXPECT_THAT(text, ::testing::HasSubstr(" 1/3  0 s left  naive causal 4096 forward"));
  EXPECT_THAT(text, ::testing::HasSubstr("wrong: for a reason\n"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("unsupported")));
  EXPECT_TRUE(text.ends_with("\r\033[K"));
}

TEST(Progress, NamesTheRoundAndCountsWhatIsLeft) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  {
    Progress progress(6, Progress::Style::lines, file.get());
    progress.begin_round(2, 3);
    progress.leave_out(2);
    progress.finished(example(StatusCode::ok), "");
  }
  std::string text(4096, '\0');
  std::rewind(file.get());
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  EXPECT_EQ(text, "[1/4] round 2 of 3, naive causal 4096 forward: ok, 3.25 ms, 500.0 GFLOP/s\n");
}

TEST(Progress, TellsCellsApartWhoseLinesWouldBeEqual) {
  std::vector<Record> records(4, example(StatusCode::ok));
  records[0].c.lengths = "pile";
  records[1].c.lengths = "prolong64k";
  records[1].c.sink = 1;
  records[2].c.lengths = "pile";
  records[2].c.pass = Pass::backward;
  records[3].c.tokens = 64;
  std::vector<Case> cases;
  for (const Record& record : records) cases.push_back(record.c);
  const auto axes = axes_that_tell_apart(cases);
  EXPECT_EQ(axes.size(), 2U);
  EXPECT_EQ(axes.at(cases[0].key()), " sink=0 lengths=pile");
  EXPECT_EQ(axes.at(cases[1].key()), " sink=1 lengths=prolong64k");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  {
    Progress progress(4, Progress::Style::lines, file.get());
    progress.tell_apart(cases);
    for (const Record& record : records) progress.finished(record, "");
  }
  std::string text(4096, '\0');
  std::rewind(file.get());
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  EXPECT_EQ(
      text,
      "[1/4] naive causal 4096 forward sink=0 lengths=pile: ok, 3.25 ms, 500.0 GFLOP/s\n"
      "[2/4] naive causal 4096 forward sink=1 lengths=prolong64k: ok, 3.25 ms, 500.0 GFLOP/s\n"
      "[3/4] naive causal 4096 backward: ok, 3.25 ms, 500.0 GFLOP/s\n"
      "[4/4] naive causal 64 forward: ok, 3.25 ms, 500.0 GFLOP/s\n");
}

TEST(Progress, TimesHaveTheDigitsOfTheTables) {
  const auto shown_time = [](double ms) {
    Record record = example(StatusCode::ok);
    record.metrics["time_ms"] = ms;
    const std::string text = describe_record(record);
    return text.substr(text.find("ok, ") + 4, text.rfind(',') - text.find("ok, ") - 4);
  };
  for (const double ms : {1955.2, 9.996, 0.01234}) {
    EXPECT_EQ(shown_time(ms), format_figure(ms) + " ms");
  }
  EXPECT_EQ(shown_time(1955.2), "1955 ms");
}

TEST(Progress, SilentIsSilent) {
  EXPECT_EQ(shown(Progress::Style::silent, {StatusCode::ok, StatusCode::crash}), "");
}

TEST(Progress, Durations) {
  EXPECT_EQ(format_duration(0.2), "0 s");
  EXPECT_EQ(format_duration(59.4), "59 s");
  EXPECT_EQ(format_duration(65), "1:05");
  EXPECT_EQ(format_duration(7384), "2:03:04");
}

TEST(Progress, AnUntimedRecordShowsItsErrors) {
  Record record = example(StatusCode::ok);
  record.metrics.erase("time_ms");
  EXPECT_EQ(describe_record(record), "naive causal 4096 forward: ok, error_o 2.0e-03");
}

}  // namespace
}  // namespace longca::testing
