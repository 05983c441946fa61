#pragma once

#include <exception>
#include <string>

namespace longca {

/// The sentence of the last C function of this thread that failed.
std::string& last_error();
/// Sets it; to a shorter one where there is no memory for it.
void set_last_error(const char* sentence) noexcept;

/// The body of a C function. An exception, which must not reach Python, becomes the return value
/// `failed`; last_error says why.
template <typename Result, typename Body>
Result guarded(Result failed, const Body& body) noexcept {
  try {
    return body();
  } catch (const std::exception& error) {
    set_last_error(error.what());
  } catch (...) {
    set_last_error("an exception that is no std::exception");
  }
  return failed;
}

}  // namespace longca
