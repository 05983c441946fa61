#pragma once

#include <string>

#include "core/shared_library.h"
#include "core/status.h"

namespace longca {

/// NCCL, loaded at run time; the build needs only its header.
struct NcclLibrary {
  Support support;  ///< ok, or `unavailable` and what to install
  SharedLibrary file;
  int version = 0;   ///< 22809 for 2.28.9
  std::string path;  ///< the file that was loaded
};

/// Loads libnccl.so.2 once per process: from $LONGCA_NCCL (folder or file), else the first found by
/// the dynamic loader, in the CUDA toolkit, or in a Python environment's nvidia-nccl package. Never
/// throws.
const NcclLibrary& nccl_library();

/// "2.28.9" for 22809.
std::string nccl_version_text(int version);

}  // namespace longca
