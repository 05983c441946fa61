#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/suite/axes.h"
#include "bench/suite/axis_values.h"
#include "core/error.h"
#include "core/parse.h"

// Builders of axes that are one field of a case, for the table in axes.cpp.

namespace longca {

using Names = std::vector<std::string>;

template <typename T>
struct ValueOf {
  using type = T;
};
template <typename T>
struct ValueOf<std::optional<T>> {
  using type = T;
};

/// Converts a field's value to its canonical text.
template <typename T>
std::string to_text(const T& value) {
  if constexpr (std::is_same_v<T, DType> || std::is_same_v<T, Pass>) {
    return std::string(to_string(value));
  } else {
    return fmt::format("{}", value);
  }
}
/// The value of a canonical text.
template <typename T>
T from_text(const std::string& text) {
  if constexpr (std::is_same_v<T, DType>) {
    return parse_dtype(text).value();
  } else if constexpr (std::is_same_v<T, Pass>) {
    return parse_pass(text).value();
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(parse_number("a number", text));
  } else if constexpr (std::is_unsigned_v<T>) {
    return static_cast<T>(std::stoull(text));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(std::stoll(text));
  } else {
    return text;
  }
}

[[noreturn]] inline void throw_wrong_type(const std::string& key, const char* expected) {
  throw_input_error("the case's \"{}\" is not {}", key, expected);
}

/// One entry of the "case" object, checked for its type.
template <typename T>
T read_entry(const nlohmann::json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end()) throw_input_error("the case has no \"{}\"", key);
  if constexpr (std::is_floating_point_v<T>) {
    if (!found->is_number()) throw_wrong_type(key, "a number");
    return found->template get<T>();
  } else if constexpr (std::is_integral_v<T>) {
    if (!found->is_number_integer()) throw_wrong_type(key, "a whole number");
    // A conversion would wrap around: 2³² + 8 heads would be 8.
    const bool fits = found->is_number_unsigned()
                          ? std::in_range<T>(found->template get<std::uint64_t>())
                          : std::in_range<T>(found->template get<std::int64_t>());
    if (!fits) throw_input_error("the case's \"{}\" is {}, out of range", key, found->dump());
    return found->template get<T>();
  } else {
    if (!found->is_string()) throw_wrong_type(key, "a text");
    const auto text = found->template get<std::string>();
    if constexpr (std::is_same_v<T, DType>) {
      if (!parse_dtype(text))
        throw_input_error("the case's \"{}\" is '{}', no known dtype", key, text);
    } else if constexpr (std::is_same_v<T, Pass>) {
      if (!parse_pass(text))
        throw_input_error("the case's \"{}\" is '{}', no known pass", key, text);
    }
    return from_text<T>(text);
  }
}

template <typename T>
nlohmann::json entry(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else {
    return to_text(value);
  }
}

/// An axis that is one field of the case.
template <auto Field>
Axis field_axis(std::string key, Axis axis) {
  using Member = std::remove_cvref_t<decltype(std::declval<Case&>().*Field)>;
  using Value = typename ValueOf<Member>::type;
  constexpr bool kOptional = !std::is_same_v<Member, Value>;
  axis.keys = {key};
  axis.assign = [](Case& c, const std::string& value) { c.*Field = from_text<Value>(value); };
  if constexpr (kOptional) {
    axis.clear = [](Case& c) { c.*Field = std::nullopt; };
    axis.text = [](const Case& c) -> std::optional<std::string> {
      if (!(c.*Field)) return std::nullopt;
      return to_text(*(c.*Field));
    };
    axis.write = [key](const Case& c, nlohmann::json& object) {
      if (c.*Field) object[key] = entry(*(c.*Field));
    };
    axis.read = [key](const nlohmann::json& object, Case& c) {
      if (object.contains(key)) c.*Field = read_entry<Value>(object, key);
    };
  } else {
    axis.text = [](const Case& c) -> std::optional<std::string> { return to_text(c.*Field); };
    axis.write = [key](const Case& c, nlohmann::json& object) { object[key] = entry(c.*Field); };
    axis.read = [key](const nlohmann::json& object, Case& c) {
      c.*Field = read_entry<Value>(object, key);
    };
  }
  return axis;
}

/// An axis of names out of a closed set.
template <auto Field>
Axis name_axis(std::string name, std::string help, std::string standard, Names (*names)(),
               bool (*applies)(const MaskTraits&) = nullptr) {
  Axis axis{
      .name = name, .values = "NAME", .help = std::move(help), .standard = std::move(standard)};
  axis.names = names;
  axis.parse = names_of(name, names);
  axis.applies = applies;
  return field_axis<Field>(std::move(name), std::move(axis));
}

/// An axis of counts inside [low, high].
template <auto Field>
Axis count_axis(const std::string& name, std::string key, std::string help, std::string standard,
                std::int64_t low, std::int64_t high, bool (*applies)(const MaskTraits&) = nullptr) {
  Axis axis{
      .name = name, .values = "COUNT", .help = std::move(help), .standard = std::move(standard)};
  axis.parse = counts_between(name, low, high);
  axis.applies = applies;
  return field_axis<Field>(std::move(key), std::move(axis));
}

/// Leaves the axis's standard out of cases, and so out of keys and records.
inline Axis quiet(Axis axis) {
  axis.quiet = true;
  axis.assign = [assign = axis.assign, clear = axis.clear, standard = axis.standard](
                    Case& c, const std::string& value) {
    value == standard ? clear(c) : assign(c, value);
  };
  axis.read = [read = axis.read, clear = axis.clear, text = axis.text, parse = axis.parse,
               standard = axis.standard](const nlohmann::json& object, Case& c) {
    read(object, c);
    if (const auto value = text(c)) {
      parse(*value);  // names what it does not know
      if (*value == standard) clear(c);
    }
  };
  return axis;
}

}  // namespace longca
