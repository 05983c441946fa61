#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace longca {

/// A flag, file or value from the user that cannot be used; the program prints the message and
/// exits with 2. The message is a sentence that names the offending thing, its value and its limit.
class InputError : public std::runtime_error {
 public:
  explicit InputError(const std::string& sentence) : std::runtime_error(without_nul(sentence)) {}

 private:
  /// what() ends at a NUL, which texts of files may hold.
  static std::string without_nul(const std::string& sentence) {
    std::string written;
    for (const char c : sentence) c == '\0' ? written += "\\x00" : written += c;
    return written;
  }
};

/// A violated invariant of this program: a bug, never the user's fault.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

template <typename... Args>
[[noreturn]] void throw_input_error(fmt::format_string<Args...> format, Args&&... args) {
  throw InputError(fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] inline void throw_internal_error(const char* file, int line, const char* expression,
                                              const std::string& sentence) {
  throw InternalError(fmt::format("{}:{}: {} does not hold: {}", file, line, expression, sentence));
}

}  // namespace longca

/// Throws InternalError unless the invariant holds: LONGCA_CHECK(a == b, "a is {}, b is {}", a, b).
#define LONGCA_CHECK(condition, ...)                                                            \
  do {                                                                                          \
    if (!(condition)) [[unlikely]]                                                              \
      ::longca::throw_internal_error(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__)); \
  } while (false)
