#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/device.h"

namespace longca {

/// Bytes before and behind an array that a kernel writes, in which it must not; a multiple of every
/// alignment needed.
inline constexpr std::int64_t kOutputMargin = 4096;

/// Where an array begins in an allocation that is used up to `end`, with a margin before it. A
/// large one begins at a multiple of a large page, as it would without margins: the place of
/// outputs changes the times of backward passes by up to 5 %.
std::int64_t begin_behind_margin(std::int64_t end, std::int64_t bytes);

/// The margins of some arrays of one device.
class Margins {
 public:
  explicit Margins(Device& device) : device_(&device) {}
  /// An array with a margin on both sides; none without data or bytes.
  void add(const char* name, void* data, std::int64_t bytes);
  /// Writes what `written` expects.
  void fill() const;
  /// The first margin that was written since, "64 bytes behind lse"; empty if none.
  std::string written() const;

 private:
  struct Array {
    const char* name;
    std::byte* data;
    std::int64_t bytes;
  };
  Device* device_;
  std::vector<Array> arrays_;
};

}  // namespace longca
