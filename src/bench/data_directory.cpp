#include "bench/data_directory.h"

#include "bench/build_info.h"

namespace longca {

namespace fs = std::filesystem;

namespace {

fs::path find_data() {
  std::error_code error;
  const fs::path program = program_directory();
  fs::path installed = program.parent_path().parent_path() / "share/longca";
  if (program.parent_path().filename() == "libexec" &&
      fs::is_directory(installed / "configs", error)) {
    return installed;
  }
  return build_info().source_dir;
}

}  // namespace

fs::path program_directory() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

const fs::path& data_directory() {
  static const fs::path found = find_data();
  return found;
}

}  // namespace longca
