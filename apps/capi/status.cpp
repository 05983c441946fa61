// Statuses, errors and versions of longca.h.

#include "answer.h"
#include "longca.h"

#define LONGCA_TEXT_OF(x) #x
#define LONGCA_TEXT(x) LONGCA_TEXT_OF(x)

extern "C" {

using namespace longca;
using namespace longca::capi;

const char* longca_last_error(void) {
  return last_error().c_str();
}

const char* longca_status_name(longca_status status) {
  switch (status) {
    case LONGCA_OK:
      return "ok";
    case LONGCA_INVALID_ARGUMENT:
      return "invalid argument";
    case LONGCA_UNSUPPORTED:
      return "unsupported";
    case LONGCA_UNAVAILABLE:
      return "unavailable";
    case LONGCA_OUT_OF_MEMORY:
      return "out of memory";
    case LONGCA_FAILED:
      return "failed";
  }
  return "unknown status";
}

const char* longca_version(void) {
  return LONGCA_TEXT(LONGCA_VERSION_MAJOR) "." LONGCA_TEXT(LONGCA_VERSION_MINOR) "." LONGCA_TEXT(
      LONGCA_VERSION_PATCH);
}

longca_status longca_check_abi(int32_t abi_version) {
  return answer([&] {
    if (abi_version == LONGCA_ABI_VERSION) return;
    throw Refusal(LONGCA_UNSUPPORTED,
                  fmt::format("compiled against version {} of the binary interface, liblongca.so "
                              "{} has version {}",
                              abi_version, longca_version(), LONGCA_ABI_VERSION));
  });
}

}  // extern "C"
