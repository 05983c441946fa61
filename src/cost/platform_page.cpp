#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "core/error.h"
#include "cost/platform.h"
#include "cost/platform_fields.h"

namespace longca::cost {
namespace {

constexpr std::size_t kColumns = 100;

/// The shortest digits that give the same number, with an exponent that is a multiple of three
/// where it is not 0 to 2: 170, 0.975, 3.5e12, 20e-6.
std::string number_text(double value) {
  char digits[32];
  if (value == 0 || (value >= 1e-3 && value < 1e6)) {
    const auto end = std::to_chars(digits, std::end(digits), value, std::chars_format::fixed).ptr;
    return {digits, end};
  }
  const auto end =
      std::to_chars(digits, std::end(digits), value, std::chars_format::scientific).ptr;
  const std::string_view text(digits, static_cast<std::size_t>(end - digits));
  const std::size_t e = text.find('e');
  const std::size_t sign = text[e + 1] == '+' ? 2 : 1;
  int exponent = 0;
  std::from_chars(text.data() + e + sign, text.data() + text.size(), exponent);
  std::string mantissa(text.substr(0, 1));
  if (e > 2) mantissa += text.substr(2, e - 2);
  const int places = ((exponent % 3) + 3) % 3;
  const auto whole = static_cast<std::size_t>(places) + 1;
  mantissa.resize(std::max(mantissa.size(), whole), '0');
  const std::string fraction = mantissa.substr(whole);
  return fmt::format("{}{}{}e{}", mantissa.substr(0, whole), fraction.empty() ? "" : ".", fraction,
                     exponent - places);
}

std::string number_text(std::int64_t value) {
  return std::to_string(value);
}

std::string escaped(std::string_view text) {
  std::string result;
  if (text.starts_with(' ')) {  // would go with the line end before it
    result = "\\u0020";
    text.remove_prefix(1);
  }
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result;
}

/// A text on one line, or one broken between words, whose line ends TOML skips.
std::string text_line(std::string_view key, std::string_view value) {
  const std::string text = escaped(value);
  if (key.size() + text.size() + 5 <= kColumns) return fmt::format("{} = \"{}\"\n", key, text);
  std::string lines = fmt::format("{} = \"\"\"\\\n  ", key);
  std::size_t begin = 0;
  std::size_t last = 0;  // a single space: the last place to break the line
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (i - begin + 4 > kColumns && last > begin) {
      lines += text.substr(begin, last - begin) + " \\\n  ";
      begin = last + 1;
    }
    if (text[i] == ' ' && text[i - 1] != ' ' && text[i + 1] != ' ') last = i;
  }
  return lines + text.substr(begin) + "\"\"\"\n";
}

bool is_bare(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/// A table's name, with quotes around parts that TOML does not take bare.
std::string table_name(std::string_view name) {
  std::string quoted;
  while (true) {
    const std::size_t dot = name.find('.');
    const std::string_view part = name.substr(0, dot);
    const bool bare = !part.empty() && std::ranges::all_of(part, is_bare);
    quoted += bare ? std::string(part) : fmt::format("\"{}\"", escaped(part));
    if (dot == std::string_view::npos) return quoted;
    quoted += '.';
    name.remove_prefix(dot + 1);
  }
}

class PageWriter {
 public:
  explicit PageWriter(std::string& page) : page_(page) {}

  void section(const char* name, const char* meaning, const std::string& measured) {
    page_ += fmt::format("\n# {}\n[{}]\n", meaning, table_name(name));
    page_ += text_line("measured", measured);
  }

  template <typename Number>
  void field(const char* key, const char* meaning, Number value) {
    if (*meaning != '\0') page_ += fmt::format("# {}\n", meaning);
    page_ += fmt::format("{} = {}\n", key, number_text(value));
  }

 private:
  std::string& page_;
};

class FigureLister {
 public:
  void section(const char* name, const char* /*meaning*/, const std::string& /*measured*/) {
    section_ = name;
  }
  template <typename Number>
  void field(const char* key, const char* /*meaning*/, Number value) {
    figures_.push_back({section_ + "." + key, static_cast<double>(value)});
  }
  std::vector<Figure> take() { return std::move(figures_); }

 private:
  std::string section_;
  std::vector<Figure> figures_;
};

std::string spread_table(const std::map<std::string, double>& spread) {
  std::string table =
      "\n# Of the figures that longca calibrate measured: how far a round, in new processes, was "
      "from "
      "it at\n# most, as a part of the figure.\n[spread]\n";
  for (const auto& [key, part] : spread) {
    table += fmt::format("\"{}\" = {}\n", escaped(key), number_text(part));
  }
  return table;
}

}  // namespace

std::string to_toml(const Platform& platform) {
  std::string page =
      "# The rates of a kind of machine, by which simulate and advise price calls and exchanges.\n"
      "# Seconds, bytes, FLOP and cycles; every number is above 0. 'measured' says where and "
      "how.\n";
  page += text_line("name", platform.name);
  page += text_line("description", platform.description);
  if (platform.kind != Platform{}.kind) page += text_line("kind", platform.kind);
  if (!platform.card.empty()) page += text_line("card", platform.card);
  visit_fields(platform, PageWriter(page));
  visit_optional_fields(platform, PageWriter(page));
  if (!platform.spread.empty()) page += spread_table(platform.spread);
  return page;
}

std::vector<Figure> figures_of(const Platform& platform) {
  FigureLister lister;
  visit_fields(platform, lister);
  visit_optional_fields(platform, lister);
  return lister.take();
}

}  // namespace longca::cost
