#pragma once

#include <functional>
#include <string>

#include "core/error.h"

namespace longca::testing {

/// The sentence of the InputError that the call throws.
inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no InputError";
}

}  // namespace longca::testing
