#pragma once

#include <string>

#include "core/shared_library.h"
#include "core/status.h"

namespace longca {

/// The cuDNN that is loaded at run time: the build needs its headers only.
struct CudnnLibrary {
  Support support;  ///< ok, or `unavailable` and what to install
  SharedLibrary file;
  int version = 0;   ///< 91900 for 9.19.0
  std::string path;  ///< the file that was loaded
};

/// Loads the file `chosen`, or libcudnn.so.9 of the folder `chosen`; if it is empty, the one that
/// the loader finds. Never throws.
CudnnLibrary load_cudnn(const std::string& chosen);

/// That of $LONGCA_CUDNN; loaded once per process.
const CudnnLibrary& cudnn_library();

/// "9.19.0" for 91900.
std::string cudnn_version_text(int version);

}  // namespace longca
