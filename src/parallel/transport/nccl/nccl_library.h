#pragma once

#include <string>

#include "core/status.h"

namespace longca {

/// The NCCL that is loaded at run time: the build needs its header only.
struct NcclLibrary {
  Support support;         ///< ok, or `unavailable` and what to install
  void* handle = nullptr;  ///< of dlopen
  int version = 0;         ///< 22809 for 2.28.9
  std::string path;        ///< the file that was loaded
};

/// libnccl.so.2 of the folder $LONGCA_NCCL (or that file), else the first that can be loaded: the
/// loader's, the CUDA toolkit's, that of a Python environment's PyTorch. Once per process; never
/// throws.
const NcclLibrary& nccl_library();

/// "2.28.9" for 22809.
std::string nccl_version_text(int version);

}  // namespace longca
