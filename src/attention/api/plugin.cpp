#include "attention/api/plugin.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string_view>

namespace longca {
namespace {

constexpr std::string_view kHash = LONGCA_INTERFACE_HASH;

}  // namespace

std::string plugin_interface() {
  return std::string(kHash);
}

std::string plugin_interface(const std::string& file) {
  if (!std::filesystem::is_regular_file(file)) return "";
  const std::string_view whole = longca_plugin_interface;
  const std::string mark(whole.substr(0, whole.size() - kHash.size()));
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::boyer_moore_horspool_searcher searcher(mark.begin(), mark.end());
  auto at = bytes.begin();
  while (true) {
    at = std::search(at, bytes.end(), searcher);
    if (std::distance(at, bytes.end()) < std::ssize(whole)) return "";
    std::string hash(at + std::ssize(mark), at + std::ssize(whole));
    const bool is_hash =
        std::ranges::all_of(hash, [](unsigned char c) { return std::isxdigit(c); });
    if (is_hash) return hash;
    ++at;
  }
}

}  // namespace longca
