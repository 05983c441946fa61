#include "bench/record/record_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <sstream>
#include <utility>

#include "bench/record/origin.h"
#include "core/error.h"
#include "core/output_file.h"

namespace longca {
namespace {

namespace fs = std::filesystem;

/// Keeps a second run from writing between this one's lines. Worker processes do not inherit locks
/// of this kind, so a killed run never leaves its file locked. A file system without locks is
/// accepted.
void lock(int file, const fs::path& path) {
  struct flock whole_file = {};
  whole_file.l_type = F_WRLCK;
  whole_file.l_whence = SEEK_SET;
  if (::fcntl(file, F_SETLK, &whole_file) != 0 && (errno == EACCES || errno == EAGAIN)) {
    throw_input_error("{} is being written by another run", path.string());
  }
}

void truncate(int file, std::size_t bytes, const fs::path& path) {
  if (::ftruncate(file, static_cast<off_t>(bytes)) != 0) throw_file_error("write", path, errno);
}

/// Writes at the end, or not at all: takes back a line that did not fit.
void append_whole(int file, std::string_view text, const fs::path& path) {
  const off_t before = ::lseek(file, 0, SEEK_END);
  const int error = write_all(file, text);
  if (error == 0) return;
  if (before >= 0) static_cast<void>(!::ftruncate(file, before));
  throw_file_error("write", path, error);
}

/// The records of a file that is about to be changed; an InputError if it holds anything else.
RecordFile read_own(int file, const fs::path& path, const char* what_not) {
  std::string reason = "blank lines";
  try {
    RecordFile found = read_records(file, path.string());
    if (!found.records.empty() || found.whole_bytes == 0) return found;
  } catch (const InputError& error) {
    reason = error.what();
  }
  throw_input_error("{} holds other things than records: it is not {} ({})", path.string(),
                    what_not, reason);
}

FileDescriptor open_to_append(const fs::path& path) {
  if (path.extension() == ".gz") {
    throw_input_error(
        "{} is for compressed records, and a run appends plain lines: name a .jsonl "
        "and compress it afterwards",
        path.string());
  }
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file.is_open()) throw_file_error("write", path, errno);
  return file;
}

struct stat info_of(int file, const fs::path& path) {
  struct stat info = {};
  if (::fstat(file, &info) != 0) throw_file_error("write", path, errno);
  return info;
}

/// Ends a last line that lacks only its newline.
void end_line(int file, const fs::path& path) {
  const off_t size = info_of(file, path).st_size;
  char last = '\n';
  if (size > 0 && ::pread(file, &last, 1, size - 1) == 1 && last != '\n') {
    append_whole(file, "\n", path);
  }
}

/// Cuts what a killed run has left of a last record, so that whole lines can follow.
void repair(int file, const RecordFile& found, const fs::path& path) {
  if (found.torn) truncate(file, found.whole_bytes, path);
  end_line(file, path);
}

std::string text_of(int file, const fs::path& path) {
  std::string text(static_cast<std::size_t>(info_of(file, path).st_size), '\0');
  const ssize_t n = ::pread(file, text.data(), text.size(), 0);
  if (n != static_cast<ssize_t>(text.size())) throw_file_error("read", path, n < 0 ? errno : EIO);
  return text;
}

/// The lines of `text` that `other` does not have.
std::string lines_lacking(const std::string& text, const std::string& other) {
  std::set<std::string> there;
  std::istringstream of_other(other);
  for (std::string line; std::getline(of_other, line);) there.insert(line);
  std::string lacking;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!there.contains(line)) lacking += line + '\n';
  }
  return lacking;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// Throws InputError for the file that standard output or error is redirected into: what the run
/// prints there would be written over the records.
void refuse_own_output(const struct stat& opened, const fs::path& path) {
  for (const auto& [stream, name] :
       {std::pair(STDOUT_FILENO, "output"), std::pair(STDERR_FILENO, "error")}) {
    struct stat info = {};
    if (::fstat(stream, &info) != 0 || !same_file(info, opened)) continue;
    throw_input_error(
        "{} is where standard {} goes, and the run prints there: records go to a file of their "
        "own, as --out my.jsonl",
        path.string(), name);
  }
}

}  // namespace

fs::path backup_of(const fs::path& path) {
  return path.string() + ".bak";
}

void RecordWriter::Cells::add(const Record& record) {
  const std::string key = record.c.key();
  all.insert(key);
  // Of records of one cell the last counts.
  record.status.ok() ? static_cast<void>(ok.insert(key)) : static_cast<void>(ok.erase(key));
}

bool RecordWriter::Cells::cover(const Cells& other) const {
  return all.size() >= other.all.size() && ok.size() >= other.ok.size();
}

RecordWriter::RecordWriter(const fs::path& path, Mode mode, std::size_t cells, bool can_resume)
    : path_(follow_links(path)), file_(open_to_append(path_)) {
  const struct stat opened = info_of(file_.get(), path_);
  // Only a regular file has contents to keep.
  if (!S_ISREG(opened.st_mode)) return;
  refuse_own_output(opened, path);
  lock(file_.get(), path_);
  // Another run may have put its new file here before this one had the lock on the old.
  struct stat now = {};
  if (::stat(path_.c_str(), &now) != 0 || !same_file(opened, now)) {
    throw_input_error("{} is being written by another run", path_.string());
  }
  if (mode == Mode::replace) {
    prepare_to_replace(cells, can_resume);
  } else {
    repair(file_.get(), read_own(file_.get(), path_, "continued"), path_);
  }
}

/// Finds out, before anything is measured, whatever could keep the old file from being set aside.
void RecordWriter::prepare_to_replace(std::size_t cells, bool can_resume) {
  const RecordFile found = read_own(file_.get(), path_, "replaced");
  for (const Record& record : found.records) old_cells_.add(record);
  if (old_cells_.all.size() > cells) {
    throw_input_error(
        "{} holds {} cells and this run makes {}: add {}--force to replace them, or another --out",
        path_.string(), old_cells_.all.size(), cells, can_resume ? "--resume to keep them, " : "");
  }
  if (!found.records.empty()) {
    const OutputFile probe(path_);
    find_backup();
  }
  repair(file_.get(), found, path_);
  old_bytes_ = static_cast<std::size_t>(info_of(file_.get(), path_).st_size);
}

/// Opens the backup that another run has left, if there is one.
void RecordWriter::find_backup() {
  const fs::path path = backup_of(path_);
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return;
  FileDescriptor file = open_to_append(path);
  // A run killed in set_aside has left one file with both names. Closing either descriptor would
  // end the lock, so this one is kept as well.
  if (!same_file(info_of(file.get(), path), info_of(file_.get(), path_))) {
    lock(file.get(), path);
    repair(file.get(), read_own(file.get(), path, "added to"), path);
  }
  backup_.own_bytes = static_cast<std::size_t>(info_of(file.get(), path).st_size);
  backup_.file = std::move(file);
}

/// Puts a file of one line in the place of the old one, which becomes the backup. A process that is
/// killed between two calls leaves the old records under one of the two names or both.
void RecordWriter::set_aside(const std::string& first_line) {
  OutputFile fresh(path_);
  lock(fresh.descriptor(), path_);
  append_whole(fresh.descriptor(), first_line, path_);  // as long as nothing has changed
  const std::size_t bytes = std::exchange(old_bytes_, 0);
  backup_.path = backup_of(path_);
  if (backup_.file.is_open()) {
    add_to_backup(bytes);
  } else if (::link(path_.c_str(), backup_.path.c_str()) != 0 &&
             std::rename(path_.c_str(), backup_.path.c_str()) != 0) {  // no hard links here
    throw_file_error("rename", path_, errno);
  }
  file_ = fresh.commit_open();
  ::fcntl(file_.get(), F_SETFL, O_APPEND);
}

void RecordWriter::add_to_backup(std::size_t bytes) {
  const int backup = backup_.file.get();
  if (same_file(info_of(backup, backup_.path), info_of(file_.get(), path_))) return;
  append_whole(backup, text_of(file_.get(), path_).substr(0, bytes), backup_.path);
}

void RecordWriter::drop_backup() {
  if (backup_.file.is_open()) {
    truncate(backup_.file.get(), backup_.own_bytes, backup_.path);
  } else {
    ::unlink(backup_.path.c_str());
  }
  backup_ = {};
}

void RecordWriter::keep_latest() {
  find_file_again("");
  if (old_bytes_ > 0 || !S_ISREG(info_of(file_.get(), path_).st_mode)) return;
  const std::vector<Record> records = read_records(file_.get(), path_.string()).records;
  const std::vector<Record> latest = latest_of_each_host(records);
  if (latest.size() == records.size()) return;
  OutputFile fresh(path_);
  lock(fresh.descriptor(), path_);
  for (const Record& record : latest) {
    append_whole(fresh.descriptor(), to_line(record) + '\n', path_);
  }
  file_ = fresh.commit_open();
  ::fcntl(file_.get(), F_SETFL, O_APPEND);
}

/// Sees to it that the file under the name has what was written: somebody may have removed it, or
/// put another one there (an editor, sed -i).
void RecordWriter::find_file_again(const std::string& pending) {
  const struct stat own = info_of(file_.get(), path_);
  if (!S_ISREG(own.st_mode)) return;
  struct stat there = {};
  if (::stat(path_.c_str(), &there) == 0) {
    if (!same_file(own, there)) go_on_in_other_file(S_ISREG(there.st_mode), pending);
  } else if (errno == ENOENT) {
    OutputFile fresh(path_);
    lock(fresh.descriptor(), path_);
    append_whole(fresh.descriptor(), text_of(file_.get(), path_), path_);
    file_ = fresh.commit_open();
    ::fcntl(file_.get(), F_SETFL, O_APPEND);
  }
}

/// Adds to the file that has taken the name what it lacks of this one, and continues it. If it
/// cannot be continued, what this one has goes to the backup, and so does `pending`.
void RecordWriter::go_on_in_other_file(bool is_regular, const std::string& pending) {
  const std::string own = text_of(file_.get(), path_);
  try {
    if (!is_regular) throw_input_error("{} is no regular file", path_.string());
    FileDescriptor other = open_to_append(path_);
    lock(other.get(), path_);
    const RecordFile found = read_own(other.get(), path_, "continued");
    repair(other.get(), found, path_);
    if (old_bytes_ > 0) {  // still to be replaced, and so is the other one
      old_cells_ = {};
      for (const Record& record : found.records) old_cells_.add(record);
      old_bytes_ = static_cast<std::size_t>(info_of(other.get(), path_).st_size);
    } else {
      append_whole(other.get(), lines_lacking(own, text_of(other.get(), path_)), path_);
    }
    file_ = std::move(other);
  } catch (const InputError& error) {
    const fs::path backup = backup_of(path_);
    const std::string kept = (old_bytes_ > 0 ? "" : own) + pending;
    append_whole(open_to_append(backup).get(), kept, backup);
    throw RecordsMoved(fmt::format("what was measured is in {}: another file has its name, and {}",
                                   backup.string(), error.what()));
  }
}

void RecordWriter::append(const Record& record) {
  const std::string line = to_line(record) + '\n';
  find_file_again(line);
  if (old_bytes_ > 0) {
    set_aside(line);
  } else {
    append_whole(file_.get(), line, path_);
  }
  if (backup_.path.empty()) return;
  new_cells_.add(record);
  if (new_cells_.cover(old_cells_)) drop_backup();
}

}  // namespace longca
