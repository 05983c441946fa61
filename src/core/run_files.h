#pragma once

#include <sys/types.h>

#include <compare>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace longca {

/// The files that one command reads and writes, known by device and inode: by whatever names two of
/// them come (links, `./`, hard links), an output is never an input or another output. Devices and
/// pipes may be named twice; "-" and "" name none.
class RunFiles {
 public:
  /// `what` says in messages how the command line names the file: "--html". Both throw InputError
  /// for a file that is written and has another use.
  void reads(std::string_view what, const std::filesystem::path& path);
  void writes(std::string_view what, const std::filesystem::path& path);
  /// Likewise of a file that is written anew as something else than records: nor may there be one
  /// of records, by its name (.jsonl, .jsonl.gz).
  void writes_view(std::string_view what, const std::filesystem::path& path);
  /// The same for pictures of any name in a folder: no input may be a .png, .svg or .pdf in it.
  void writes_pictures(std::string_view what, const std::filesystem::path& folder);

 private:
  /// A file that is there, or (with `name`) one that its folder does not have yet.
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    std::string name{};
    auto operator<=>(const Identity&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  struct Use {
    std::string what;
    std::filesystem::path path;
    bool writes;
  };
  void add(const std::filesystem::path& path, Use use);
  /// False for what may be named twice.
  static bool identify(const std::filesystem::path& path, Identity& identity);

  std::map<Identity, Use> uses_;
};

}  // namespace longca
