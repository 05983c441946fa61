#include "fuzz.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "core/printable.h"

namespace longca::fuzz {

void require(bool holds, const std::string& sentence) {
  if (holds) return;
  fmt::print(stderr, "fuzz: {}\n", sentence);
  std::abort();
}

void require_printable(std::string_view view) {
  while (!view.empty()) {
    std::string_view line = view.substr(0, view.find('\n'));
    view.remove_prefix(std::min(line.size() + 1, view.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);  // CSV ends its lines so
    require(printable(line) == line, fmt::format("a view has the line {}", printable(line)));
  }
}

MemoryFile::MemoryFile(std::string_view text) : file_(::memfd_create("fuzz", MFD_CLOEXEC)) {
  require(::write(file_, text.data(), text.size()) == static_cast<ssize_t>(text.size()),
          "no memory for a file");
}

MemoryFile::~MemoryFile() {
  ::close(file_);
}

std::filesystem::path MemoryFile::path() const {
  return fmt::format("/proc/self/fd/{}", file_);
}

}  // namespace longca::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  longca::fuzz::fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
