#include "bench/data_directory.h"

#include "bench/build_info.h"

namespace longca {
namespace {

namespace fs = std::filesystem;

fs::path find_data() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  fs::path installed = program.parent_path().parent_path() / "share/longca";
  if (program.parent_path().filename() == "libexec" &&
      fs::is_directory(installed / "configs", error)) {
    return installed;
  }
  return build_info().source_dir;
}

}  // namespace

const std::filesystem::path& data_directory() {
  static const fs::path found = find_data();
  return found;
}

}  // namespace longca
