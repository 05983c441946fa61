#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/error.h"

// What the fuzz targets share. A target is one source, which defines `fuzz`: it gives a text to the
// program's own reader and aborts if an answer is wrong. What a reader may throw of bad input is
// InputError alone.

namespace longca::fuzz {

/// Of every channel: what the targets' lines begin with.
inline constexpr const char* kSecret = "s";

/// The target.
void fuzz(std::string_view text);

/// Aborts, saying why, unless `holds`.
void require(bool holds, const std::string& sentence);
/// Aborts unless the lines of a view are what `printable` leaves as it is.
void require_printable(std::string_view view);

/// Calls `read`; false if it refused its input. The sentence must be one line when printed.
template <typename Read>
bool accepts(const Read& read) {
  try {
    read();
    return true;
  } catch (const InputError& error) {
    require(error.what()[0] != '\0', "an error without a sentence");
    return false;
  }
}

/// A file in memory, for readers that take a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view text);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::filesystem::path path() const;

 private:
  int file_;
};

}  // namespace longca::fuzz
