#pragma once

#include <filesystem>
#include <string_view>

#include "core/file_descriptor.h"
#include "core/system_error.h"

namespace longca {

/// Throws for a file that the system refuses with `error` (an errno): "cannot write a.csv: No space
/// left on device" for `what` = "write". InputError where the path is wrong (nothing there, a
/// folder in a file's place or the reverse, too long), else SystemError.
[[noreturn]] void throw_file_error(std::string_view what, const std::filesystem::path& path,
                                   int error);

/// Where the symbolic links of the last component lead, whether something is there or not. Throws
/// SystemError for links in a loop.
std::filesystem::path follow_links(const std::filesystem::path& path);

/// Writes all of `text` at the file's position. Returns 0, or the errno of the write that failed.
[[nodiscard]] int write_all(int file, std::string_view text);

/// A file that replaces what is at its path only when it is complete: it is written beside it, as
/// `.longca-PID-N`, and renamed. It is locked meanwhile: those that killed processes left unlocked
/// are removed by whoever writes in that folder next. What is no regular file (a pipe, a device) is
/// written itself.
class OutputFile {
 public:
  /// Throws InputError or SystemError naming the path; nothing has changed then.
  explicit OutputFile(const std::filesystem::path& path);
  /// Removes what has been written, unless it was committed.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  int descriptor() const { return file_.get(); }
  /// Throws SystemError: a full disk, a limit on the size of files.
  void write(std::string_view text);
  /// Puts the file in its place, with the permissions of the one that it replaces.
  void commit();
  /// The same for a file that is written on: hands its descriptor over.
  FileDescriptor commit_open();

 private:
  void open_beside();

  std::filesystem::path path_;
  std::filesystem::path target_;  ///< path_ with its links followed
  std::filesystem::path beside_;  ///< empty: the target itself is open, or all is done
  FileDescriptor file_;
};

/// Writes a whole file by an OutputFile.
void replace_file(const std::filesystem::path& path, std::string_view text);

}  // namespace longca
