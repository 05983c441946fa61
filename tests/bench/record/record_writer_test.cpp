#include "bench/record/record_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "bench/expect_input_error.h"
#include "bench/suite/axes.h"
#include "core/system_error.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using Mode = RecordWriter::Mode;

Record record_of(std::int64_t tokens, std::string reason = "") {
  Record record;
  record.c.kernel = "flash";
  record.c.mask = "causal";
  record.c.tokens = tokens;
  record.c = canonical(record.c);
  if (!reason.empty()) record.status = {StatusCode::crash, std::move(reason)};
  record.at = "2026-05-01T10:00:00Z";
  return record;
}

std::string lines_of(std::initializer_list<std::int64_t> tokens) {
  std::string text;
  for (const std::int64_t t : tokens) text += to_line(record_of(t)) + '\n';
  return text;
}

/// Where to cut a text: everywhere near the ends of its lines, and at some places between. (Cutting
/// at every byte is the reader's test; here each cut costs the disk a flush.)
std::vector<std::size_t> cuts_of(const std::string& text) {
  std::vector<std::size_t> cuts;
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const std::size_t newline = text.find('\n', size < 3 ? 0 : size - 3);
    const bool near_end = size < 12 || newline <= size + 3;
    if (near_end || size % 37 == 0) cuts.push_back(size);
  }
  return cuts;
}

TEST(RecordWriter, EachLineIsThereWhenAppendReturns) {
  const TempDirectory folder;
  RecordWriter writer(folder / "a.jsonl", Mode::replace);
  for (std::int64_t tokens = 1; tokens <= 5; ++tokens) {
    writer.append(record_of(tokens));
    EXPECT_EQ(read_records(folder / "a.jsonl").records.size(), static_cast<std::size_t>(tokens));
  }
}

TEST(RecordWriter, AFileThatIsRemovedMeanwhileIsWrittenAnew) {
  const TempDirectory folder;
  RecordWriter writer(folder / "a.jsonl", Mode::replace);
  writer.append(record_of(1));
  std::filesystem::remove(folder / "a.jsonl");
  writer.append(record_of(2));
  writer.append(record_of(3));
  EXPECT_EQ(read_file(folder / "a.jsonl"), lines_of({1, 2, 3}));
}

/// As an editor does, or sed -i: the old file has no name any more.
void put_in_place(const std::filesystem::path& file, const std::string& text) {
  write_file(file.string() + ".new", text);
  std::filesystem::rename(file.string() + ".new", file);
}

void wait_until_locked(const std::filesystem::path& file) {
  const FileDescriptor opened(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  while (true) {
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    ASSERT_EQ(::fcntl(opened.get(), F_GETLK, &lock), 0);
    if (lock.l_type != F_UNLCK) return;
    ::usleep(1000);
  }
}

TEST(RecordWriter, AFileThatIsReplacedMeanwhileIsContinued) {
  const TempDirectory folder;
  const auto file = folder / "a.jsonl";
  RecordWriter writer(file, Mode::replace);
  writer.append(record_of(1));
  writer.append(record_of(2));
  put_in_place(file, lines_of({7, 1}));
  writer.append(record_of(3));
  writer.append(record_of(4));
  EXPECT_EQ(read_file(file), lines_of({7, 1, 2, 3, 4}));
  put_in_place(file, lines_of({8}));
  writer.append(record_of(2));
  writer.keep_latest();
  EXPECT_EQ(read_file(file), lines_of({8, 7, 1, 2, 3, 4}));
  EXPECT_FALSE(std::filesystem::exists(backup_of(file)));
}

TEST(RecordWriter, OneThatIsReplacedBeforeARecordIsStillTheOldOne) {
  const TempDirectory folder;
  const auto file = folder / "a.jsonl";
  write_file(file, lines_of({1, 2}));
  RecordWriter writer(file, Mode::replace);
  put_in_place(file, lines_of({7, 8}));
  writer.append(record_of(3));
  EXPECT_EQ(read_file(file), lines_of({3}));
  EXPECT_EQ(read_file(backup_of(file)), lines_of({7, 8}));
}

TEST(RecordWriter, WhatCannotBeContinuedLeavesTheRecordsInTheBackup) {
  const TempDirectory folder;
  const auto file = folder / "a.jsonl";
  for (const bool by_other_run : {false, true}) {
    std::filesystem::remove(backup_of(file));
    std::filesystem::remove(file);
    RecordWriter writer(file, Mode::replace);
    writer.append(record_of(1));
    put_in_place(file, by_other_run ? lines_of({7}) : "a poem\n");
    if (by_other_run) {
      // A lock of this process would not keep it out.
      const pid_t other = ::fork();
      if (other == 0) {
        const RecordWriter held(file, Mode::resume);
        while (true) ::pause();
      }
      wait_until_locked(file);
      EXPECT_THROW(writer.append(record_of(2)), RecordsMoved);
      ::kill(other, SIGKILL);
      ::waitpid(other, nullptr, 0);
      EXPECT_EQ(read_file(file), lines_of({7}));
    } else {
      EXPECT_THROW(writer.append(record_of(2)), RecordsMoved);
      EXPECT_EQ(read_file(file), "a poem\n");
    }
    EXPECT_EQ(read_file(backup_of(file)), lines_of({1, 2}));
  }
}

TEST(RecordWriter, ReplaceStartsAnew) {
  const TempDirectory folder;
  write_file(folder / "a.jsonl", lines_of({1, 2}));
  RecordWriter(folder / "a.jsonl", Mode::replace).append(record_of(3));
  EXPECT_EQ(read_file(folder / "a.jsonl"), lines_of({3}));
}

TEST(RecordWriter, KeepsTheLatestOfEachKeyAndWritesOn) {
  const TempDirectory folder;
  write_file(folder / "a.jsonl", lines_of({7}));
  RecordWriter writer(folder / "a.jsonl", Mode::resume);
  writer.append(record_of(1, "first round"));
  writer.append(record_of(2));
  writer.append(record_of(1));
  writer.keep_latest();
  EXPECT_EQ(read_file(folder / "a.jsonl"), lines_of({7, 1, 2}));
  writer.append(record_of(3));
  EXPECT_EQ(read_file(folder / "a.jsonl"), lines_of({7, 1, 2, 3}));
}

TEST(RecordWriter, KeepsTheSameKeyOfOtherMachines) {
  const TempDirectory folder;
  Record other = record_of(1);
  other.env = {{"cpu", {{"model", "another"}}}};
  write_file(folder / "a.jsonl", to_line(other) + '\n');
  RecordWriter writer(folder / "a.jsonl", Mode::resume);
  writer.append(record_of(1));
  writer.append(record_of(1));
  writer.keep_latest();
  EXPECT_EQ(read_file(folder / "a.jsonl"), to_line(other) + '\n' + lines_of({1}));
}

TEST(RecordWriter, KeepsAnOldFileThatNoRecordHasReplaced) {
  const TempDirectory folder;
  write_file(folder / "a.jsonl", lines_of({1, 1}));
  RecordWriter(folder / "a.jsonl", Mode::replace).keep_latest();
  EXPECT_EQ(read_file(folder / "a.jsonl"), lines_of({1, 1}));
}

TEST(RecordWriter, ReplaceTakesAnEmptyFileAndWhatAKilledRunLeft) {
  const TempDirectory folder;
  const std::string line = lines_of({1});
  for (const std::size_t size : cuts_of(line)) {
    write_file(folder / "a.jsonl", line.substr(0, size));
    RecordWriter(folder / "a.jsonl", Mode::replace).append(record_of(3));
    ASSERT_EQ(read_file(folder / "a.jsonl"), lines_of({3})) << size;
  }
}

TEST(RecordWriter, OtherFilesAreNeverTouched) {
  const TempDirectory folder;
  const std::string foreign[] = {"my thesis",
                                 "my thesis\n",
                                 "{\"a\":1}\n",
                                 "{\"schema\":2}\n",
                                 "\n",
                                 "\n" + lines_of({1}).substr(0, 20),
                                 std::string("\0", 1),
                                 "[]\n",
                                 lines_of({1}) + "my thesis\n" + lines_of({2}),
                                 lines_of({1}) + "my thesis"};
  for (const std::string& text : foreign) {
    for (const Mode mode : {Mode::replace, Mode::resume}) {
      // An empty line is no record, but nothing that resuming could hurt.
      if (mode == Mode::resume && text == "\n") continue;
      write_file(folder / "a.jsonl", text);
      EXPECT_THROW(RecordWriter(folder / "a.jsonl", mode), InputError) << text;
      EXPECT_EQ(read_file(folder / "a.jsonl"), text);
    }
  }
}

TEST(RecordWriter, ResumeRefusesAFileWithAForeignLineInIt) {
  const TempDirectory folder;
  const std::string text = lines_of({1}) + "something else\n" + lines_of({2});
  write_file(folder / "a.jsonl", text);
  expect_input_error([&] { RecordWriter(folder / "a.jsonl", Mode::resume); }, "a.jsonl:2: ");
  EXPECT_EQ(read_file(folder / "a.jsonl"), text);
}

TEST(RecordWriter, ResumeRepairsAFileCutAtAnyByte) {
  const TempDirectory folder;
  const std::string text = lines_of({1, 2});
  const std::string first = lines_of({1});
  for (const std::size_t size : cuts_of(text)) {
    write_file(folder / "a.jsonl", text.substr(0, size));
    RecordWriter(folder / "a.jsonl", Mode::resume).append(record_of(3));
    const bool has_first = size + 1 >= first.size();
    const bool has_second = size + 1 >= text.size();
    const std::string kept = has_second ? text : has_first ? first : "";
    ASSERT_EQ(read_file(folder / "a.jsonl"), kept + lines_of({3})) << size;
  }
}

TEST(RecordWriter, ResumeStartsAMissingFile) {
  const TempDirectory folder;
  RecordWriter(folder / "a.jsonl", Mode::resume).append(record_of(1));
  EXPECT_EQ(read_file(folder / "a.jsonl"), lines_of({1}));
}

TEST(RecordWriter, PlacesThatCannotBeWrittenAreNamed) {
  const TempDirectory folder;
  expect_input_error([&] { RecordWriter(folder / "no/a.jsonl", Mode::replace); },
                     "no/a.jsonl: No such file or directory");
  expect_input_error([&] { RecordWriter(folder.path(), Mode::replace); }, "Is a directory");
}

TEST(RecordWriter, AFullDiskIsAnError) {
  RecordWriter writer("/dev/full", Mode::replace);
  try {
    writer.append(record_of(1));
    ADD_FAILURE() << "the record is lost";
  } catch (const SystemError& error) {
    EXPECT_STREQ(error.what(), "cannot write /dev/full: No space left on device");
  }
}

TEST(RecordWriter, ALineThatDidNotFitIsTakenBack) {
  const TempDirectory folder;
  RecordWriter writer(folder / "a.jsonl", Mode::replace);
  writer.append(record_of(1));
  // A limit on the size of files cuts a write short as a full disk does.
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit tight = before;
  tight.rlim_cur = lines_of({1}).size() + 100;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  EXPECT_THROW(writer.append(record_of(2, std::string(4096, 'x'))), SystemError);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  writer.append(record_of(3));
  EXPECT_EQ(read_file(folder / "a.jsonl"), lines_of({1, 3}));
}

TEST(RecordWriter, TheOldFileStaysUntilTheNewOneHoldsAsManyCells) {
  const TempDirectory folder;
  const auto file = folder / "a.jsonl";
  const std::string old = lines_of({1, 2});
  write_file(file, old);
  RecordWriter writer(file, Mode::replace, 2);
  EXPECT_EQ(read_file(file), old) << "nothing is measured yet";
  EXPECT_FALSE(std::filesystem::exists(folder / "a.jsonl.bak"));
  writer.append(record_of(3));
  EXPECT_EQ(read_file(file), lines_of({3}));
  EXPECT_EQ(read_file(folder / "a.jsonl.bak"), old);
  EXPECT_EQ(writer.backup(), folder / "a.jsonl.bak");
  writer.append(record_of(3));  // the same cell
  EXPECT_TRUE(std::filesystem::exists(folder / "a.jsonl.bak"));
  writer.append(record_of(4));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.jsonl.bak"));
  EXPECT_TRUE(writer.backup().empty());
  EXPECT_EQ(read_file(file), lines_of({3, 3, 4}));
}

TEST(RecordWriter, CellsWithoutANumberDoNotOutweighThoseWithOne) {
  const TempDirectory folder;
  write_file(folder / "a.jsonl", lines_of({1}));
  RecordWriter writer(folder / "a.jsonl", Mode::replace);
  writer.append(record_of(1, "no GPU here"));
  EXPECT_EQ(read_file(folder / "a.jsonl.bak"), lines_of({1}));
  writer.append(record_of(1));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.jsonl.bak"));
}

TEST(RecordWriter, FewerCellsReplaceMoreOnlyIfTheyMay) {
  const TempDirectory folder;
  const auto file = folder / "a.jsonl";
  const std::string old = lines_of({1, 2, 3, 3});
  write_file(file, old);
  expect_input_error([&] { RecordWriter(file, Mode::replace, 2); },
                     "a.jsonl holds 3 cells and this run makes 2: add --resume to keep them, "
                     "--force to replace them, or another --out");
  EXPECT_EQ(read_file(file), old);
  RecordWriter(file, Mode::replace).append(record_of(9));
  EXPECT_EQ(read_file(file), lines_of({9}));
  EXPECT_EQ(read_file(folder / "a.jsonl.bak"), old);
}

TEST(RecordWriter, ABackupThatIsThereIsAddedToAndNeverRemoved) {
  const TempDirectory folder;
  const auto file = folder / "a.jsonl";
  const auto backup = folder / "a.jsonl.bak";
  const std::string kept = lines_of({1, 2, 3});
  // Without its last newline, as an editor may leave it.
  write_file(backup, kept.substr(0, kept.size() - 1));
  write_file(file, lines_of({4, 5}));
  {
    RecordWriter writer(file, Mode::replace, 2);
    writer.append(record_of(6));
    EXPECT_EQ(read_file(backup), kept + lines_of({4, 5})) << "neither is lost";
    writer.append(record_of(7));
  }
  EXPECT_EQ(read_file(backup), kept);
  EXPECT_EQ(read_file(file), lines_of({6, 7}));
  const auto compressed = file.string() + ".gz";
  for (const Mode mode : {Mode::replace, Mode::resume}) {
    expect_input_error([&] { RecordWriter(compressed, mode, 2); }, "a run appends plain lines");
    EXPECT_FALSE(std::filesystem::exists(compressed));
  }
  write_file(backup, "my thesis\n");
  expect_input_error([&] { RecordWriter(file, Mode::replace, 2); },
                     "a.jsonl.bak holds other things than records: it is not added to");
  EXPECT_EQ(read_file(file), lines_of({6, 7}));
}

TEST(RecordWriter, ALinkStaysALink) {
  const TempDirectory folder;
  std::filesystem::create_directory(folder / "data");
  write_file(folder / "data/a.jsonl", lines_of({1, 2}));
  std::filesystem::create_symlink("data/a.jsonl", folder / "a.jsonl");
  RecordWriter(folder / "a.jsonl", Mode::replace).append(record_of(3));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "a.jsonl"));
  EXPECT_EQ(read_file(folder / "data/a.jsonl"), lines_of({3}));
  EXPECT_EQ(read_file(folder / "data/a.jsonl.bak"), lines_of({1, 2}));
}

TEST(RecordWriter, ASecondRunDoesNotWriteBetweenTheLines) {
  const TempDirectory folder;
  write_file(folder / "a.jsonl", lines_of({7}));  // to be replaced
  RecordWriter writer(folder / "a.jsonl", Mode::replace);
  writer.append(record_of(1));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    try {
      RecordWriter second(folder / "a.jsonl", Mode::replace);
    } catch (const InputError& error) {
      ::_exit(std::string(error.what()).find("another run") != std::string::npos ? 0 : 1);
    }
    ::_exit(2);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(folder / "a.jsonl"), lines_of({1}));
}

}  // namespace
}  // namespace longca::testing
