#include "bench/cell/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "core/output_file.h"

namespace longca {
namespace {

static_assert(std::endian::native == std::endian::little, "the header says '<f4'");

/// Magic, version, length of the header, the header as a Python literal padded to 64 bytes
/// (numpy.lib.format).
std::string npy_header(const std::string& shape) {
  constexpr std::size_t kPreamble = 10;
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", shape);
  header.append(63 - (kPreamble + header.size()) % 64, ' ');
  header += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  return text + header;
}

void widen_row(const ConstTensorView& t, std::int64_t token, std::int64_t head, float* to) {
  with_type_of(t.dtype, [&]<typename T>(T) {
    std::transform(t.row<T>(token, head), t.row<T>(token, head) + t.dim, to,
                   [](T value) { return static_cast<float>(value); });
  });
}

/// A .npy file that appears under its name once it is complete.
class NpyFile {
 public:
  NpyFile(const std::filesystem::path& path, const std::string& shape)
      : file_(path), buffer_(npy_header(shape)) {}
  void write(const float* values, std::int64_t count) {
    buffer_.append(reinterpret_cast<const char*>(values), static_cast<std::size_t>(count) * 4);
    if (buffer_.size() >= kBlock) flush();
  }
  void commit() {
    flush();
    file_.commit();
  }

 private:
  static constexpr std::size_t kBlock = std::size_t{1} << 20;
  void flush() {
    file_.write(buffer_);
    buffer_.clear();
  }

  OutputFile file_;
  std::string buffer_;
};

}  // namespace

void write_npy(const std::filesystem::path& path, const ConstTensorView& t) {
  NpyFile file(path, fmt::format("{}, {}, {}", t.tokens, t.heads, t.dim));
  std::vector<float> row(static_cast<std::size_t>(t.heads * t.dim));
  for (std::int64_t token = 0; token < t.tokens; ++token) {
    for (std::int64_t head = 0; head < t.heads; ++head) {
      widen_row(t, token, head, row.data() + head * t.dim);
    }
    file.write(row.data(), t.heads * t.dim);
  }
  file.commit();
}

void write_npy(const std::filesystem::path& path, const ConstLseView& lse) {
  NpyFile file(path, fmt::format("{}, {}", lse.heads, lse.tokens));
  for (std::int64_t head = 0; head < lse.heads; ++head) file.write(lse.head(head), lse.tokens);
  file.commit();
}

void write_npy(const std::filesystem::path& path, std::span<const float> values) {
  NpyFile file(path, fmt::format("{},", values.size()));
  file.write(values.data(), std::ssize(values));
  file.commit();
}

}  // namespace longca
