#include "mask/own_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "core/device.h"
#include "core/error.h"
#include "core/file_descriptor.h"
#include "core/output_file.h"
#include "core/printable.h"

namespace longca {
namespace {

constexpr std::size_t kHashDigits = 16;

/// The contents of a regular file, at most one byte more than `max_bytes`.
std::string read_bytes(std::string_view what, const std::filesystem::path& path,
                       std::size_t max_bytes) {
  // Without O_NONBLOCK a pipe that nobody writes would be waited for.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info = {};
  if (!file.is_open() || ::fstat(file.get(), &info) != 0) throw_file_error("read", path, errno);
  if (!S_ISREG(info.st_mode)) {
    throw_input_error("{} '{}' is no regular file", what, path.string());
  }
  std::string bytes(std::min(static_cast<std::size_t>(info.st_size), max_bytes) + 1, '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t n = ::read(file.get(), bytes.data() + size, bytes.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_file_error("read", path, errno);
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  bytes.resize(size);
  return bytes;
}

/// A file's name as one for keys and folders: other characters become '_', a long one is cut.
std::string name_of(const std::filesystem::path& path) {
  std::string name = path.filename().string().substr(0, kMaxNameBytes - kHashDigits - 1);
  std::ranges::replace_if(
      name, [](char c) { return !is_name(std::string(1, c)) && c != '.'; }, '_');
  return name;
}

bool is_hex(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0 &&
         std::isupper(static_cast<unsigned char>(c)) == 0;
}

}  // namespace

bool means_file(std::string_view value) {
  return value.find_first_of("/.") != value.npos;
}

OwnFile read_own_file(std::string_view what, const std::filesystem::path& path,
                      std::size_t max_bytes) {
  std::string bytes = read_bytes(what, path, max_bytes);
  if (bytes.size() > max_bytes) {
    throw_input_error("{} '{}' is too large: the maximum is {} MiB", what, path.string(),
                      max_bytes >> 20);
  }
  const std::uint64_t hash =
      Device::get(DeviceKind::cpu).hash(0, bytes.data(), static_cast<std::int64_t>(bytes.size()));
  return {fmt::format("{}-{:016x}", name_of(path), hash), std::filesystem::absolute(path),
          std::move(bytes)};
}

std::string_view without_hash(std::string_view name) {
  if (name.size() <= kHashDigits + 1) return name;
  const std::size_t dash = name.size() - kHashDigits - 1;
  const bool has_hash = name[dash] == '-' && std::ranges::all_of(name.substr(dash + 1), is_hex);
  return has_hash ? name.substr(0, dash) : name;
}

}  // namespace longca
