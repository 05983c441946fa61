#include "core/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace longca {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // as Linux follows at most

bool is_wrong_path(int error) {
  return error == ENOENT || error == ENOTDIR || error == EISDIR || error == ENAMETOOLONG ||
         error == EINVAL;
}

/// The folder that a file is in, as a path that can be opened.
fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

constexpr std::string_view kBeside = ".longca-";

/// Removes files beside targets that killed processes left in a folder: those that nobody has
/// locked. Processes of other hosts may write there too, so that a process number says nothing.
void remove_leftovers(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (!entry.path().filename().native().starts_with(kBeside)) continue;
    const FileDescriptor file(
        ::open(entry.path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat info = {};
    if (!file.is_open() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
  }
}

/// Locks a file that was just made. False where another process took it for a leftover first.
bool lock_unless_removed(int file) {
  // Where the file system has no locks, nobody removes what he cannot lock.
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  struct stat info = {};
  return ::fstat(file, &info) == 0 && info.st_nlink > 0;
}

}  // namespace

void throw_file_error(std::string_view what, const fs::path& path, int error) {
  const std::string sentence =
      fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(error));
  if (is_wrong_path(error)) throw InputError(sentence);
  throw SystemError(sentence);
}

fs::path follow_links(const fs::path& path) {
  // A pipe that /dev/stdout or /proc/self/fd/1 stands for has no name of its own.
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
    return path;
  }
  fs::path target = path;
  for (int links = 0; links < kMaxLinks; ++links) {
    std::error_code error;
    const fs::path next = fs::read_symlink(target, error);
    if (error) return target;  // no link
    target = next.is_absolute() ? next : folder_of(target) / next;
  }
  throw_file_error("follow", path, ELOOP);
}

int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {  // a pipe that its other owner has made non-blocking
      pollfd waiting{file, POLLOUT, 0};
      ::poll(&waiting, 1, -1);
      continue;
    }
    if (n < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

OutputFile::OutputFile(const fs::path& path) : path_(path), target_(follow_links(path)) {
  struct stat info = {};
  const bool exists = ::stat(target_.c_str(), &info) == 0;
  if (!exists && errno != ENOENT) throw_file_error("write", path_, errno);
  if (exists && S_ISDIR(info.st_mode)) throw_file_error("write", path_, EISDIR);
  if (exists && !S_ISREG(info.st_mode)) {
    file_ = FileDescriptor(::open(target_.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file_.is_open()) throw_file_error("write", path_, errno);
    return;
  }
  // The rename would replace a file that may not be written.
  if (exists && ::access(target_.c_str(), W_OK) != 0) throw_file_error("write", path_, errno);
  if (!target_.has_filename()) throw_file_error("write", path_, EISDIR);
  open_beside();
  if (exists) static_cast<void>(::fchmod(file_.get(), info.st_mode & 07777));
}

void OutputFile::open_beside() {
  static std::atomic<int> count{0};
  const fs::path folder = folder_of(target_);
  remove_leftovers(folder);
  while (!file_.is_open()) {
    beside_ = folder / fmt::format("{}{}-{}", kBeside, ::getpid(), count++);
    file_ = FileDescriptor(::open(beside_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file_.is_open()) {
      if (lock_unless_removed(file_.get())) return;
      file_ = FileDescriptor();
      continue;
    }
    if (errno == EEXIST) continue;  // of a process of this number on another host
    const int error = errno;
    beside_.clear();
    throw_file_error("write", path_, error);
  }
}

OutputFile::~OutputFile() {
  if (!beside_.empty()) ::unlink(beside_.c_str());
}

void OutputFile::write(std::string_view text) {
  if (const int error = write_all(file_.get(), text)) throw_file_error("write", path_, error);
}

FileDescriptor OutputFile::commit_open() {
  if (!beside_.empty() && std::rename(beside_.c_str(), target_.c_str()) != 0) {
    throw_file_error("write", path_, errno);
  }
  beside_.clear();
  return std::move(file_);
}

void OutputFile::commit() {
  // Some file systems report only when a file is synchronized or closed that the disk is full.
  if (const int copy = ::dup(file_.get()); copy >= 0 && ::close(copy) != 0) {
    throw_file_error("write", path_, errno);
  }
  commit_open();
}

void replace_file(const fs::path& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace longca
