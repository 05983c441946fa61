#pragma once

#include <filesystem>

namespace longca {

/// The folder of this program's file, wherever it was started from; "" where /proc does not say.
std::filesystem::path program_directory();

/// The folder with configs/ and results/: of an installed program PREFIX/share/longca beside its
/// PREFIX/libexec/longca (cmake/LongcaInstall.cmake), else the checkout that it was built from.
const std::filesystem::path& data_directory();

}  // namespace longca
