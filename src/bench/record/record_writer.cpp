#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "bench/record/record.h"
#include "core/error.h"
#include "core/file_descriptor.h"

namespace longca {
namespace {

[[noreturn]] void cannot_write(const std::filesystem::path& path) {
  throw_input_error("cannot write {}: {}", path.string(), std::strerror(errno));
}

/// Keeps a second run from writing between this one's lines. Worker processes do not inherit locks
/// of this kind, so a killed run never leaves its file locked. A file system without locks is
/// accepted.
void lock(int file, const std::filesystem::path& path) {
  struct flock whole_file = {};
  whole_file.l_type = F_WRLCK;
  whole_file.l_whence = SEEK_SET;
  if (::fcntl(file, F_SETLK, &whole_file) != 0 && (errno == EACCES || errno == EAGAIN)) {
    throw_input_error("{} is being written by another run", path.string());
  }
}

std::string read_all(int file, const std::filesystem::path& path) {
  std::string text;
  std::string block(1 << 16, '\0');
  while (true) {
    const ssize_t n = ::pread(file, block.data(), block.size(), static_cast<off_t>(text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_input_error("cannot read {}: {}", path.string(), std::strerror(errno));
    if (n == 0) return text;
    text.append(block, 0, static_cast<std::size_t>(n));
  }
}

/// Whether the text is a record file: its first line is a record, or the torn beginning of one.
bool is_record_file(std::string_view text, const std::string& name) {
  constexpr std::string_view kBegin = R"({"schema":)";
  const std::string_view first = text.substr(0, text.find('\n'));
  const bool cut = first.size() == text.size();
  if (cut && (first.starts_with(kBegin) || kBegin.starts_with(first))) return true;
  try {
    return !parse_records(first, name).records.empty();
  } catch (const InputError&) {
    return false;
  }
}

void write_whole(int file, std::string_view text, const std::filesystem::path& path) {
  const off_t before = ::lseek(file, 0, SEEK_END);
  while (!text.empty()) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int reason = errno;
      // Removes a line that did not fit, so that the file ends with a whole record.
      if (before >= 0) static_cast<void>(!::ftruncate(file, before));
      errno = reason;
      cannot_write(path);
    }
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void truncate(int file, std::size_t bytes, const std::filesystem::path& path) {
  if (::ftruncate(file, static_cast<off_t>(bytes)) != 0) cannot_write(path);
}

void empty_file(int file, const std::filesystem::path& path) {
  if (!is_record_file(read_all(file, path), path.string())) {
    throw_input_error("{} holds other things than records: it is not replaced", path.string());
  }
  truncate(file, 0, path);
}

void repair_file(int file, const std::filesystem::path& path) {
  const std::string text = read_all(file, path);
  const RecordFile found = parse_records(text, path.string());
  if (found.torn) {
    if (found.records.empty() && !is_record_file(text, path.string())) {
      throw_input_error("{} holds other things than records: it is not continued", path.string());
    }
    truncate(file, found.whole_bytes, path);
  } else if (!text.empty() && text.back() != '\n') {
    write_whole(file, "\n", path);
  }
}

}  // namespace

RecordWriter::RecordWriter(std::filesystem::path path, Mode mode) : path_(std::move(path)) {
  FileDescriptor file(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file.is_open()) cannot_write(path_);
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) cannot_write(path_);
  // Only a regular file has contents to keep.
  if (S_ISREG(info.st_mode)) {
    lock(file.get(), path_);
    mode == Mode::replace ? empty_file(file.get(), path_) : repair_file(file.get(), path_);
  }
  file_ = std::move(file);
}

void RecordWriter::append(const Record& record) {
  write_whole(file_.get(), to_line(record) + '\n', path_);
}

}  // namespace longca
