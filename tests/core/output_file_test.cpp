#include "core/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "core/error.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

template <typename Error>
void expect_thrown(const std::function<void()>& call, const std::string& part) {
  try {
    call();
    ADD_FAILURE() << "nothing thrown, expected: " << part;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

TEST(OutputFile, ReplacesNothingUntilItIsCommitted) {
  const TempDirectory folder;
  write_file(folder / "a", "before");
  {
    OutputFile file(folder / "a");
    file.write("after");
    EXPECT_EQ(read_file(folder / "a"), "before");
  }
  EXPECT_EQ(read_file(folder / "a"), "before");
  OutputFile file(folder / "a");
  file.write("af");
  file.write("ter");
  file.commit();
  EXPECT_EQ(read_file(folder / "a"), "after");
  EXPECT_EQ(files_in(folder.path()), 1U) << "something is left beside it";
}

TEST(OutputFile, RemovesWhatKilledProcessesLeftAndNothingElse) {
  const TempDirectory folder;
  const fs::path left = folder / ".longca-1-0";
  write_file(left, "half a recor");
  write_file(folder / "longca-1-0", "a file of the user");
  fs::create_directory(folder / ".longca-folder");
  OutputFile at_work(folder / "a");
  EXPECT_FALSE(fs::exists(left));
  at_work.write("all of it");
  OutputFile(folder / "b").commit();
  at_work.commit();
  EXPECT_EQ(read_file(folder / "a"), "all of it") << "what is being written is no leftover";
  EXPECT_EQ(files_in(folder.path()), 4U);
}

TEST(OutputFile, KeepsPermissionsAndLinks) {
  const TempDirectory folder;
  fs::create_directory(folder / "data");
  write_file(folder / "data/a", "before");
  ASSERT_EQ(::chmod((folder / "data/a").c_str(), 0640), 0);
  fs::create_symlink("data/a", folder / "link");
  fs::create_symlink("link", folder / "link_to_link");
  replace_file(folder / "link_to_link", "after");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "data/a"), "after");
  EXPECT_EQ(fs::status(folder / "data/a").permissions(), fs::perms{0640});
  fs::create_symlink("data/b", folder / "dangling");
  replace_file(folder / "dangling", "new");
  EXPECT_EQ(read_file(folder / "data/b"), "new");
}

TEST(OutputFile, WhatCannotBeWrittenIsNamedBeforeAnythingChanges) {
  const TempDirectory folder;
  expect_thrown<InputError>([&] { OutputFile(folder / "no/a"); }, "no/a: No such file");
  expect_thrown<InputError>([&] { OutputFile(folder.path()); }, "Is a directory");
  fs::create_symlink("loop", folder / "loop");
  expect_thrown<SystemError>([&] { OutputFile(folder / "loop"); }, "symbolic links");
}

TEST(OutputFile, ADeviceIsWrittenItself) {
  OutputFile null("/dev/null");
  null.write("gone");
  null.commit();
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  OutputFile full("/dev/full");
  expect_thrown<SystemError>([&] { full.write("x"); }, "/dev/full: No space left on device");
}

/// /dev/fd/N of a pipe is a link whose text, "pipe:[123]", is no path.
TEST(OutputFile, APipeIsWrittenByItsDescriptorsName) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  OutputFile file("/dev/fd/" + std::to_string(ends[1]));
  file.write("through");
  file.commit();
  char text[8] = {};
  EXPECT_EQ(::read(ends[0], text, 7), 7);
  EXPECT_STREQ(text, "through");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(OutputFile, AFullDiskLeavesWhatWasThere) {
  const TempDirectory folder;
  write_file(folder / "a", "before");
  // A limit on the size of files cuts a write short as a full disk does.
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit tight = before;
  tight.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  expect_thrown<SystemError>([&] { replace_file(folder / "a", std::string(4096, 'x')); },
                             "a: File too large");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_file(folder / "a"), "before");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(OutputFile, IsWrittenOnOnceItIsInPlace) {
  const TempDirectory folder;
  OutputFile file(folder / "a");
  file.write("one ");
  const FileDescriptor open = file.commit_open();
  EXPECT_EQ(read_file(folder / "a"), "one ");
  EXPECT_EQ(write_all(open.get(), "two"), 0);
  EXPECT_EQ(read_file(folder / "a"), "one two");
}

}  // namespace
}  // namespace longca::testing
