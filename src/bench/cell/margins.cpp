#include "bench/cell/margins.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/rounding.h"

namespace longca {
namespace {

/// A value that neither zeroing nor poisoning writes.
constexpr unsigned char kMarginByte = 0xa5;
constexpr std::int64_t kLargePage = std::int64_t{2} << 20;

}  // namespace

std::int64_t begin_behind_margin(std::int64_t end, std::int64_t bytes) {
  const std::int64_t alignment = bytes < kLargePage ? kOutputMargin : kLargePage;
  return round_up(end + kOutputMargin, alignment);
}

void Margins::add(const char* name, void* data, std::int64_t bytes) {
  if (data != nullptr && bytes > 0) arrays_.push_back({name, static_cast<std::byte*>(data), bytes});
}

void Margins::fill() const {
  for (const Array& array : arrays_) {
    device_->fill(array.data - kOutputMargin, kMarginByte, kOutputMargin);
    device_->fill(array.data + array.bytes, kMarginByte, kOutputMargin);
  }
}

std::string Margins::written() const {
  std::vector<unsigned char> margin(kOutputMargin);
  for (const Array& array : arrays_) {
    for (const bool behind : {false, true}) {
      device_->copy(margin.data(), behind ? array.data + array.bytes : array.data - kOutputMargin,
                    kOutputMargin);
      const auto kept = std::ranges::count(margin, kMarginByte);
      if (kept == kOutputMargin) continue;
      return fmt::format("{} bytes {} {}", kOutputMargin - kept, behind ? "behind" : "before",
                         array.name);
    }
  }
  return {};
}

}  // namespace longca
