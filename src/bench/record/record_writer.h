#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <set>
#include <string>

#include "bench/record/record.h"
#include "core/file_descriptor.h"
#include "core/system_error.h"

namespace longca {

/// The records of a run are in the backup, not in the file that it was to write.
class RecordsMoved : public SystemError {
 public:
  using SystemError::SystemError;
};

/// Appends records to a .jsonl file, one line each, handed to the kernel before `append` returns: a
/// process that is killed at any moment loses none of them. Holds a lock on the file: a second
/// writer gets an InputError.
class RecordWriter {
 public:
  enum class Mode {
    /// Starts a new file. The old one, which must be a record file (or empty), stays in its place
    /// until the first record comes, then as NAME.bak until the new one holds as many cells, and as
    /// many that are ok. Where there is a NAME.bak already, the old records are added to it.
    replace,
    resume,  ///< keeps its records; cuts a torn last line off; starts a missing file
  };
  static constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();

  /// `cells`: how many the run is to make; a file that holds more is not replaced. Throws, and
  /// changes nothing: InputError if the file holds more cells, or something else than records, or
  /// another run writes it, or standard output or error goes there; SystemError if it cannot be
  /// written. `can_resume`: whether the error may advise --resume.
  RecordWriter(const std::filesystem::path& path, Mode mode, std::size_t cells = kAnyNumber,
               bool can_resume = true);
  /// Throws SystemError if the disk is full or fails; the file then ends with the last whole
  /// record. A file that was removed meanwhile is written anew, with all of its records; one that
  /// was replaced by another gets those that it lacks, and is continued. Throws RecordsMoved if it
  /// cannot be: another run writes it, or it is no record file.
  void append(const Record& record);

  /// Rewrites the file with the last record of each key only, of each machine
  /// (latest_of_each_host). Leaves what is no regular file as it is. Throws SystemError, and the
  /// file is then as it was.
  void keep_latest();

  /// Where the records are that this file does not hold any more; empty if there are none.
  const std::filesystem::path& backup() const { return backup_.path; }

 private:
  /// How many cells have a record, and one that is ok.
  struct Cells {
    std::set<std::string> all, ok;
    void add(const Record& record);
    bool cover(const Cells& other) const;
  };
  /// The old file beside the new one.
  struct Backup {
    std::filesystem::path path{};
    std::size_t own_bytes = 0;  ///< what another run has left in it before
    FileDescriptor file{};      ///< holds a lock on it, if it was there before
  };

  void prepare_to_replace(std::size_t cells, bool can_resume);
  void find_backup();
  void set_aside(const std::string& first_line);
  void add_to_backup(std::size_t bytes);
  void drop_backup();
  void find_file_again(const std::string& pending);
  void go_on_in_other_file(bool is_regular, const std::string& pending);

  std::filesystem::path path_;  ///< its links followed
  FileDescriptor file_;
  std::size_t old_bytes_ = 0;  ///< whole lines of the file to be replaced, which is still in place
  Cells old_cells_;
  Cells new_cells_;  ///< while there is a backup
  Backup backup_;
};

/// NAME.bak of a record file.
std::filesystem::path backup_of(const std::filesystem::path& path);

}  // namespace longca
