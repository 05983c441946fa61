#include "mask/own_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/device.h"
#include "core/input_file.h"
#include "core/printable.h"

namespace longca {
namespace {

constexpr std::size_t kHashDigits = 16;

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
  std::string bytes = read_input_file(what, path, max_bytes);
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
