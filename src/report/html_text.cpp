#include "report/html_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/printable.h"

namespace longca {
namespace {

nlohmann::json with_printable_texts(const nlohmann::json& value) {
  if (value.is_string()) return printable(value.get_ref<const std::string&>());
  if (!value.is_structured()) return value;
  nlohmann::json shown = value.is_array() ? nlohmann::json::array() : nlohmann::json::object();
  for (const auto& [key, item] : value.items()) {
    if (value.is_array()) {
      shown.push_back(with_printable_texts(item));
    } else {
      shown[printable(key)] = with_printable_texts(item);
    }
  }
  return shown;
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string json_for_script(const nlohmann::json& json) {
  const std::string text =
      with_printable_texts(json).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";
    } else if (c == '>') {
      out += "\\u003e";
    } else if (c == '&') {
      out += "\\u0026";
    } else {
      out += c;
    }
  }
  return out;
}

std::string script_for_html(std::string_view script) {
  constexpr std::string_view kEnd = "</script";
  const auto is_end = [&](std::string_view text) {
    return text.size() >= kEnd.size() &&
           std::equal(kEnd.begin(), kEnd.end(), text.begin(),
                      [](char a, char b) { return a == b || a == (b | 0x20); });
  };
  std::string out;
  out.reserve(script.size());
  for (std::size_t at = script.find("</"); at != script.npos; at = script.find("</")) {
    out += script.substr(0, at);
    out += is_end(script.substr(at)) ? "<\\/" : "</";
    script.remove_prefix(at + 2);
  }
  out += script;
  return out;
}

std::string fill_template(std::string_view text,
                          const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string out;
  while (true) {
    const std::size_t begin = text.find("{{");
    out += text.substr(0, begin);
    if (begin == text.npos) return out;
    const std::size_t end = text.find("}}", begin);
    LONGCA_CHECK(end != text.npos, "a name of the template does not end");
    const std::string_view name = text.substr(begin + 2, end - begin - 2);
    const auto found = std::find_if(values.begin(), values.end(),
                                    [&](const auto& value) { return value.first == name; });
    LONGCA_CHECK(found != values.end(), "the template's '{}' has no value", name);
    out += found->second;
    text.remove_prefix(end + 2);
  }
}

}  // namespace longca
