#pragma once

#include <filesystem>

namespace longca {

/// A folder for sockets and launchers' own files that only this user can enter; removed with all
/// that is in it.
class ScratchFolder {
 public:
  /// Throws std::system_error.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace longca
