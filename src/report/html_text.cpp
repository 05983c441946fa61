#include "report/html_text.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/printable.h"
#include "core/rounding.h"

namespace longca {
namespace {

void make_texts_printable(nlohmann::json& value) {
  if (value.is_string()) {
    value = printable(value.get_ref<const std::string&>());
  } else if (value.is_array()) {
    for (nlohmann::json& item : value) make_texts_printable(item);
  } else if (value.is_object()) {
    nlohmann::json shown = nlohmann::json::object();
    for (auto& [key, item] : value.items()) {
      make_texts_printable(item);
      shown[printable(key)] = std::move(item);
    }
    value = std::move(shown);
  }
}

std::string deflated(std::string_view bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  const int code = compress(reinterpret_cast<Bytef*>(out.data()), &size,
                            reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  LONGCA_CHECK(code == Z_OK, "zlib compresses {} bytes: code {}", bytes.size(), code);
  out.resize(size);
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve(ceil_div(bytes.size(), 3) * 4);
  for (; !bytes.empty(); bytes.remove_prefix(std::min<std::size_t>(3, bytes.size()))) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      out += i <= bytes.size() ? kDigits[group >> (18 - 6 * i) & 63] : '=';
    }
  }
  return out;
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

std::string json_for_script(nlohmann::json json) {
  make_texts_printable(json);
  const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size());
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

std::string compiled_at_once(std::string plotly) {
  constexpr std::string_view kBegin = ", () => {\n\"use strict\";";
  constexpr std::string_view kEnd = "}));";
  constexpr std::size_t kHead = 2000;  // the wrapper and the licence before it
  const std::size_t begin = std::string_view(plotly).substr(0, kHead).find(kBegin);
  const std::size_t end = plotly.rfind(kEnd);
  const bool is_known = begin != plotly.npos && end != plotly.npos && begin < end &&
                        plotly.find_first_not_of("\r\n", end + kEnd.size()) == plotly.npos;
  if (!is_known) return plotly;
  plotly.insert(end + 1, ")");
  plotly.insert(begin + 2, "(");
  return plotly;
}

std::string packed_for_html(std::string_view bytes) {
  return base64(deflated(bytes));
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
