#include "core/input_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/error.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void expect_refused(const fs::path& path, const std::string& part) {
  try {
    read_input_file("hostfile", path, 100);
    ADD_FAILURE() << "nothing thrown, expected: " << part;
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

TEST(InputFile, HasAllBytes) {
  const TempDirectory folder;
  for (const std::size_t bytes : {0, 1, 99, 100}) {
    const std::string text(bytes, 'x');
    write_file(folder / "f", text);
    EXPECT_EQ(read_input_file("hostfile", folder / "f", 100), text);
  }
  const std::string status = read_input_file("status", "/proc/self/status", 1 << 20);
  EXPECT_THAT(status, HasSubstr("Threads:")) << "of whose size stat says 0";
}

TEST(InputFile, AByteOrderMarkIsNoPartOfTheText) {
  const TempDirectory folder;
  write_file(folder / "f",
             "\xef\xbb\xbf"
             "12\n");
  EXPECT_EQ(read_input_file("lengths", folder / "f", 100), "12\n");
  write_file(folder / "f", "12\xef\xbb\xbf\n");
  EXPECT_EQ(read_input_file("lengths", folder / "f", 100), "12\xef\xbb\xbf\n");
}

TEST(InputFile, RefusesWhatHasNoEndAndWhatIsTooLarge) {
  const TempDirectory folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_refused(folder / "pipe", "hostfile '" + (folder / "pipe").string() + "' is no regular");
  expect_refused("/dev/zero", "hostfile '/dev/zero' is no regular file");
  expect_refused(folder.path(), "is no regular file");
  expect_refused(folder / "absent", "cannot read " + (folder / "absent").string());
  write_file(folder / "f", std::string(101, 'x'));
  expect_refused(folder / "f", "/f' is too large: the maximum is 100 bytes");
}

}  // namespace
}  // namespace longca::testing
