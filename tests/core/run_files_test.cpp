#include "core/run_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

namespace fs = std::filesystem;

void expect_refused(const std::function<void()>& call, const std::string& sentence) {
  try {
    call();
    ADD_FAILURE() << "not refused: " << sentence;
  } catch (const InputError& error) {
    EXPECT_EQ(error.what(), sentence);
  }
}

TEST(RunFiles, AnOutputIsNoInputByWhateverName) {
  const TempDirectory folder;
  const fs::path file = folder / "a";
  write_file(file, "x");
  fs::create_symlink("a", folder / "link");
  fs::create_hard_link(file, folder / "hard");
  fs::create_directory_symlink(".", folder / "here");
  for (const fs::path& name :
       {file, folder / "link", folder / "hard", folder / "./a", folder / "here/a"}) {
    RunFiles files;
    files.reads("the report", file);
    expect_refused([&] { files.writes("--html", name); },
                   "--html would overwrite " + name.string() + ", which the report reads");
    RunFiles reversed;
    reversed.writes("--html", name);
    EXPECT_THROW(reversed.reads("the report", file), InputError);
  }
}

TEST(RunFiles, TwoOutputsAreTwoFilesThoughNeitherIsThereYet) {
  const TempDirectory folder;
  fs::create_symlink("new", folder / "dangling");
  RunFiles files;
  files.writes("--out", folder / "new");
  expect_refused(
      [&] { files.writes("--trace", folder / "dangling"); },
      "--trace would overwrite " + (folder / "dangling").string() + ", which --out writes too");
  files.writes("--trace", folder / "other");
}

/// `report --md a.jsonl b.jsonl` has one input.
TEST(RunFiles, AViewIsNotWrittenOverRecords) {
  const TempDirectory folder;
  for (const char* name : {"a.jsonl", "a.jsonl.gz"}) {
    const fs::path file = folder / name;
    RunFiles files;
    files.writes_view("--md", file);  // not there yet
    write_file(file, "x");
    RunFiles again;
    expect_refused(
        [&] { again.writes_view("--md", file); },
        "--md would overwrite the records in " + file.string() + ": give it another file");
  }
  write_file(folder / "page.md", "x");
  RunFiles files;
  files.writes_view("--md", folder / "page.md");
  EXPECT_THROW(files.writes_view("--csv", folder / "page.md"), InputError);
}

TEST(RunFiles, InputsAndDevicesMayBeNamedTwice) {
  const TempDirectory folder;
  write_file(folder / "a", "x");
  RunFiles files;
  files.reads("the report", folder / "a");
  files.reads("the report", folder / "a");
  files.writes("--csv", "-");
  files.writes("--md", "-");
  files.writes("--csv", "/dev/null");
  files.writes("--md", "/dev/null");
  files.writes("--csv", "");
}

TEST(RunFiles, PicturesDoNotReplaceAnInput) {
  const TempDirectory folder;
  write_file(folder / "forward.png", "x");
  write_file(folder / "a.jsonl", "x");
  RunFiles files;
  files.reads("the report", folder / "a.jsonl");
  files.writes_pictures("--plots", folder.path());
  files.reads("the report", folder / "forward.png");
  EXPECT_THROW(files.writes_pictures("--plots", folder.path()), InputError);
}

}  // namespace
}  // namespace longca::testing
