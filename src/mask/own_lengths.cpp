#include "mask/own_lengths.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "core/error.h"
#include "mask/own_file.h"
#include "mask/range.h"

namespace longca {
namespace {

static_assert(std::endian::native == std::endian::little,
              "elements of a .npy are read as they are");

constexpr std::string_view kNpyMagic{"\x93NUMPY", 6};
constexpr std::string_view kSeparators = " \t\r\n,";

[[noreturn]] void throw_no_length(const std::string& place, std::string_view value) {
  throw_input_error("{}: '{}' is no document's length: a whole number from 1 to {}", place,
                    value.substr(0, 40), kMaxTokens);
}

std::int64_t parse_length(std::string_view text, const std::string& name, int line) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || value < 1 || value > kMaxTokens) {
    throw_no_length(fmt::format("{}:{}", name, line), text);
  }
  return value;
}

std::vector<std::int64_t> parse_text(std::string_view text, const std::string& name) {
  std::vector<std::int64_t> lengths;
  int line = 1;
  for (std::size_t at = 0; at < text.size();) {
    if (kSeparators.find(text[at]) != kSeparators.npos) {
      line += text[at++] == '\n' ? 1 : 0;
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    lengths.push_back(parse_length(text.substr(at, end - at), name, line));
    at = end;
  }
  return lengths;
}

/// What stands behind `'key': ` in a .npy header, up to its end or the next key.
std::string_view header_value(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(key);
  if (at == header.npos) return "";
  header.remove_prefix(at + key.size());
  header.remove_prefix(std::min(header.find_first_not_of(": "), header.size()));
  return header;
}

/// The 'descr' of a header: a text with its quotes, or the beginning of what a structured dtype has
/// there instead.
std::string_view dtype_of(std::string_view header) {
  constexpr std::size_t kShown = 40;
  const std::string_view value = header_value(header, "'descr'");
  const std::size_t quote = value.starts_with('\'') ? value.find('\'', 1) : value.npos;
  return value.substr(0, quote < kShown ? quote + 1 : kShown);
}

/// A .npy in parts (numpy.lib.format).
struct Npy {
  std::string_view header;  ///< a Python literal
  std::string_view data;
};

std::optional<Npy> split_npy(std::string_view bytes) {
  if (bytes.size() < 12) return std::nullopt;
  const bool is_short = bytes[6] == 1;  // version 1 has two bytes for the header's length, else 4
  const std::size_t begin = is_short ? 10 : 12;
  std::uint32_t size = 0;
  std::memcpy(&size, bytes.data() + 8, is_short ? 2 : 4);
  if (size > bytes.size() - begin) return std::nullopt;
  return Npy{bytes.substr(begin, size), bytes.substr(begin + size)};
}

template <typename Element>
std::vector<std::int64_t> read_elements(std::string_view data, const std::string& name) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(data.size() / sizeof(Element));
  for (std::size_t at = 0; at < data.size(); at += sizeof(Element)) {
    Element value{};
    std::memcpy(&value, data.data() + at, sizeof value);
    if (std::cmp_less(value, 1) || std::cmp_greater(value, kMaxTokens)) {
      throw_no_length(fmt::format("{}: element {}", name, lengths.size()), std::to_string(value));
    }
    lengths.push_back(static_cast<std::int64_t>(value));
  }
  return lengths;
}

std::vector<std::int64_t> parse_npy(std::string_view bytes, const std::string& name) {
  using Reader = std::vector<std::int64_t> (*)(std::string_view, const std::string&);
  static const std::map<std::string_view, std::pair<std::size_t, Reader>> types = {
      {"'<i4'", {4, read_elements<std::int32_t>}},
      {"'<i8'", {8, read_elements<std::int64_t>}},
      {"'<u4'", {4, read_elements<std::uint32_t>}},
      {"'<u8'", {8, read_elements<std::uint64_t>}}};
  const auto npy = split_npy(bytes);
  if (!npy) throw_input_error("{}: the header of the .npy is cut", name);
  const std::string_view descr = dtype_of(npy->header);
  const auto type = types.find(descr);
  if (type == types.end()) {
    throw_input_error(
        "{}: lengths in a .npy are little-endian int32, int64, uint32 or uint64, not {}", name,
        descr);
  }
  std::string_view shape = header_value(npy->header, "'shape'");
  std::size_t count = 0;
  const bool is_list = shape.starts_with('(');
  if (is_list) shape.remove_prefix(1);
  const auto [end, error] = std::from_chars(shape.data(), shape.data() + shape.size(), count);
  shape.remove_prefix(static_cast<std::size_t>(end - shape.data()));
  if (!is_list || error != std::errc() || !shape.starts_with(",)")) {
    throw_input_error("{}: lengths in a .npy have one dimension", name);
  }
  const auto [size, read] = type->second;
  if (npy->data.size() % size != 0 || npy->data.size() / size != count) {
    throw_input_error("{}: {} lengths of {} bytes are announced, and {} bytes follow", name, count,
                      size, npy->data.size());
  }
  return read(npy->data, name);
}

/// The lengths that this process has read, by name.
struct Known {
  std::mutex mutex;
  std::map<std::string, OwnLengths> by_name;
};
Known& known() {
  static Known lengths;
  return lengths;
}

}  // namespace

std::vector<std::int64_t> parse_lengths(std::string_view bytes, const std::string& name) {
  std::vector<std::int64_t> lengths =
      bytes.starts_with(kNpyMagic) ? parse_npy(bytes, name) : parse_text(bytes, name);
  if (lengths.empty()) throw_input_error("{} has no document length", name);
  return lengths;
}

std::string add_own_lengths(const std::filesystem::path& file) {
  OwnFile own = read_own_file("lengths", file, kMaxLengthsBytes);
  OwnLengths read{std::move(own.path), parse_lengths(own.bytes, file.string()), 0};
  read.tokens = std::reduce(read.lengths.begin(), read.lengths.end(), std::int64_t{0});
  // Of equal files the last counts: another may be gone.
  add_own_lengths(own.name, std::move(read));
  return own.name;
}

void add_own_lengths(const std::string& name, OwnLengths lengths) {
  const std::scoped_lock lock(known().mutex);
  known().by_name.insert_or_assign(name, std::move(lengths));
}

void require_tokens(const OwnLengths& own, std::string_view name, std::int64_t tokens) {
  if (tokens <= own.tokens) return;
  throw_input_error("the sequence has {} tokens, and the {} documents of lengths {} have {}",
                    tokens, own.lengths.size(), without_hash(name), own.tokens);
}

std::vector<std::int64_t> first_documents(const OwnLengths& own, std::string_view name,
                                          std::int64_t tokens) {
  require_tokens(own, name, tokens);
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; tokens > 0; ++i) {
    lengths.push_back(std::min(own.lengths[i], tokens));
    tokens -= lengths.back();
  }
  return lengths;
}

const OwnLengths* find_own_lengths(const std::string& name) {
  const std::scoped_lock lock(known().mutex);
  const auto found = known().by_name.find(name);
  return found == known().by_name.end() ? nullptr : &found->second;
}

}  // namespace longca
