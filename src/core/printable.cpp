#include "core/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "core/error.h"

namespace longca {
namespace {

/// A character of a text and its bytes; 0 bytes: what is here is not UTF-8.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

/// Decodes the first character of `text`, which is not empty. Refuses overlong forms, surrogates
/// and what lies beyond Unicode.
Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return {};
    code = code << 6 | (next & 0x3f);
  }
  constexpr std::array<std::uint32_t, 5> kFirst = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kFirst[bytes] || code > 0x10ffff || is_surrogate) return {};
  return {code, bytes};
}

/// Ranges of characters that act instead of showing, both ends included.
constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 12> kActing = {{
    {0x00, 0x1f},        // C0
    {0x7f, 0x9f},        // DEL, C1
    {0xad, 0xad},        // soft hyphen
    {0x600, 0x605},      // marks before Arabic numbers
    {0x61c, 0x61c},      // Arabic letter mark
    {0x180e, 0x180e},    // Mongolian vowel separator
    {0x200b, 0x200f},    // zero width, left-to-right and right-to-left marks
    {0x2028, 0x202e},    // separators of lines and paragraphs, embeddings and overrides
    {0x2060, 0x206f},    // word joiner, invisible operators, isolates
    {0xfeff, 0xfeff},    // byte order mark
    {0xfff9, 0xfffb},    // interlinear annotations
    {0xe0000, 0xe007f},  // tags
}};

bool acts(std::uint32_t code) {
  return std::ranges::any_of(
      kActing, [&](const auto& range) { return code >= range.first && code <= range.second; });
}

std::string written_out(std::uint32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      if (code < 0x80) return fmt::format("\\x{:02x}", code);
      return code > 0xffff ? fmt::format("\\U{:08x}", code) : fmt::format("\\u{:04x}", code);
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = first_character(text);
    if (c.bytes == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (acts(c.code)) {
      out += written_out(c.code);
    } else {
      out += text.substr(0, c.bytes);
    }
    text.remove_prefix(std::max<std::size_t>(c.bytes, 1));
  }
  return out;
}

std::string printable_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const Character c = first_character(json);
    if (c.bytes == 0 || !acts(c.code) || c.code == '\n') {
      out += json.substr(0, std::max<std::size_t>(c.bytes, 1));
    } else if (c.code <= 0xffff) {
      out += fmt::format("\\u{:04x}", c.code);
    } else {  // a pair of surrogates
      const std::uint32_t rest = c.code - 0x10000;
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
    }
    json.remove_prefix(std::max<std::size_t>(c.bytes, 1));
  }
  return out;
}

bool is_name(std::string_view text) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  };
  return !text.empty() && text.size() <= kMaxNameBytes && text != "." && text != ".." &&
         std::ranges::all_of(text, is_allowed);
}

void check_name(std::string_view what, std::string_view text) {
  if (is_name(text)) return;
  throw_input_error("{} '{}' is no name: letters, digits, '_', '.' and '-', 1 to {} of them", what,
                    text.substr(0, 2 * kMaxNameBytes), kMaxNameBytes);
}

}  // namespace longca
