#pragma once

#include <stdexcept>

namespace longca {

/// The machine refused what the program needs of it: a full disk, a file that may not be read, no
/// memory, no process; the program prints the message, a sentence, and exits with 71.
class SystemError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace longca
