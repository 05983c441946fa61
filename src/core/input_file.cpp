#include "core/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/error.h"
#include "core/file_descriptor.h"
#include "core/output_file.h"

namespace longca {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// "64 MiB", or "100 bytes".
std::string size_text(std::size_t bytes) {
  return bytes % kMiB == 0 ? fmt::format("{} MiB", bytes / kMiB) : fmt::format("{} bytes", bytes);
}

/// At most `max_bytes` of a file, which probably has fewer than `expected`.
std::string read_up_to(std::size_t max_bytes, std::size_t expected, int file,
                       const std::filesystem::path& path) {
  std::string bytes;
  std::size_t size = 0;
  while (size < max_bytes) {
    if (size == bytes.size()) bytes.resize(std::min(std::max(expected, 2 * size), max_bytes));
    const ssize_t n = ::read(file, bytes.data() + size, bytes.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_file_error("read", path, errno);
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::string read_input_file(std::string_view what, const std::filesystem::path& path,
                            std::size_t max_bytes) {
  // Without O_NONBLOCK a pipe that nobody writes would be waited for.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info = {};
  if (!file.is_open() || ::fstat(file.get(), &info) != 0) throw_file_error("read", path, errno);
  if (!S_ISREG(info.st_mode)) {
    throw_input_error("{} '{}' is no regular file", what, path.string());
  }
  // What stat says may be too little: of files in /proc, or of one that grows.
  std::string bytes =
      read_up_to(max_bytes + 1, static_cast<std::size_t>(info.st_size) + 1, file.get(), path);
  if (bytes.size() > max_bytes) {
    throw_input_error("{} '{}' is too large: the maximum is {}", what, path.string(),
                      size_text(max_bytes));
  }
  if (bytes.starts_with(kByteOrderMark)) bytes.erase(0, kByteOrderMark.size());
  return bytes;
}

}  // namespace longca
