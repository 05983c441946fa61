#include "guarded.h"

#include <new>

namespace longca {

std::string& last_error() {
  thread_local std::string sentence;
  return sentence;
}

void set_last_error(const char* sentence) noexcept {
  try {
    last_error() = sentence;
  } catch (const std::bad_alloc&) {
    last_error() = "no memory";  // within the string itself
  }
}

}  // namespace longca
