#pragma once

#include <string>

#include "core/status.h"

namespace longca {

/// The cuDNN that is loaded at run time: the build needs its headers only.
struct CudnnLibrary {
  Support support;         ///< ok, or `unavailable` and what to install
  void* handle = nullptr;  ///< of dlopen
  int version = 0;         ///< 91900 for 9.19.0
  std::string path;        ///< the file that was loaded
};

/// libcudnn.so.9 of $LONGCA_CUDNN (the file, or a folder that has it), else the one that the loader
/// finds. Loaded once per process; never throws.
const CudnnLibrary& cudnn_library();

/// "9.19.0" for 91900.
std::string cudnn_version_text(int version);

}  // namespace longca
