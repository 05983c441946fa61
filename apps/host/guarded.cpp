#include "guarded.h"

namespace longca {

std::string& last_error() {
  thread_local std::string sentence;
  return sentence;
}

}  // namespace longca

extern "C" const char* longca_last_error(void) {
  return longca::last_error().c_str();
}
