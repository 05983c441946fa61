#include "bench/cell/npy.h"

#include <fmt/format.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.h"

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

/// A float16's value, subnormal numbers, infinities and NaN included.
float widen_half(std::uint16_t bits) {
  const auto sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffU) << 13;
  const bool special = (bits & 0x7c00U) == 0x7c00U;
  // 2^112 moves the exponent's bias from 15 to 127, and makes subnormal numbers normal.
  const float value = special ? std::bit_cast<float>(magnitude | 0x7f800000U)
                              : std::bit_cast<float>(magnitude) * 0x1p112F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
}

void widen_row(const ConstTensorView& t, std::int64_t token, std::int64_t head, float* to) {
  for (std::int64_t i = 0; i < t.dim; ++i) {
    switch (t.dtype) {
      case DType::float32:
        to[i] = t.row<float>(token, head)[i];
        break;
      case DType::bfloat16:
        to[i] = static_cast<float>(t.row<BFloat16>(token, head)[i]);
        break;
      case DType::float16:
        to[i] = widen_half(t.row<std::uint16_t>(token, head)[i]);
        break;
    }
  }
}

class File {
 public:
  File(const std::filesystem::path& path, const std::string& shape)
      : path_(path), out_(path, std::ios::binary) {
    out_ << npy_header(shape);
    check();
  }
  void write(const float* values, std::int64_t count) {
    out_.write(reinterpret_cast<const char*>(values), count * 4);
    check();
  }
  void close() {
    out_.close();
    check();
  }

 private:
  void check() const {
    if (!out_) throw_input_error("cannot write {}: {}", path_.string(), std::strerror(errno));
  }

  const std::filesystem::path& path_;
  std::ofstream out_;
};

}  // namespace

void write_npy(const std::filesystem::path& path, const ConstTensorView& t) {
  File file(path, fmt::format("{}, {}, {}", t.tokens, t.heads, t.dim));
  std::vector<float> row(static_cast<std::size_t>(t.heads * t.dim));
  for (std::int64_t token = 0; token < t.tokens; ++token) {
    for (std::int64_t head = 0; head < t.heads; ++head) {
      widen_row(t, token, head, row.data() + head * t.dim);
    }
    file.write(row.data(), t.heads * t.dim);
  }
  file.close();
}

void write_npy(const std::filesystem::path& path, const ConstLseView& lse) {
  File file(path, fmt::format("{}, {}", lse.heads, lse.tokens));
  for (std::int64_t head = 0; head < lse.heads; ++head) file.write(lse.head(head), lse.tokens);
  file.close();
}

}  // namespace longca
