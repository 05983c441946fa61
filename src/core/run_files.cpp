#include "core/run_files.h"

#include <sys/stat.h>

#include "core/error.h"
#include "core/output_file.h"

namespace longca {

namespace fs = std::filesystem;

bool RunFiles::identify(const fs::path& path, Identity& identity) {
  if (path.empty() || path == "-") return false;
  const fs::path target = follow_links(path);
  struct stat info = {};
  if (::stat(target.c_str(), &info) == 0) {
    identity = {info.st_dev, info.st_ino};
    return S_ISREG(info.st_mode);
  }
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (::stat(folder.c_str(), &info) != 0) return false;  // whoever opens it names the fault
  identity = {info.st_dev, info.st_ino, target.filename().string()};
  return true;
}

void RunFiles::add(const fs::path& path, Use use) {
  Identity identity;
  if (!identify(path, identity)) return;
  const auto [known, is_new] = uses_.try_emplace(identity, use);
  if (is_new || (!use.writes && !known->second.writes)) return;
  const Use& writer = use.writes ? use : known->second;
  const Use& other = use.writes ? known->second : use;
  throw_input_error("{} would overwrite {}, which {} {}", writer.what, writer.path.string(),
                    other.what, other.writes ? "writes too" : "reads");
}

void RunFiles::reads(std::string_view what, const fs::path& path) {
  add(path, {std::string(what), path, false});
}

void RunFiles::writes(std::string_view what, const fs::path& path) {
  add(path, {std::string(what), path, true});
}

void RunFiles::writes_view(std::string_view what, const fs::path& path) {
  writes(what, path);
  const std::string name = path.filename().string();
  struct stat info = {};
  if ((name.ends_with(".jsonl") || name.ends_with(".jsonl.gz")) &&
      ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
    throw_input_error("{} would overwrite the records in {}: give it another file", what,
                      path.string());
  }
}

void RunFiles::writes_pictures(std::string_view what, const fs::path& folder) {
  struct stat info = {};
  if (folder.empty() || ::stat(folder.c_str(), &info) != 0) return;
  for (const auto& [identity, use] : uses_) {
    const fs::path target = follow_links(use.path);
    const std::string suffix = target.extension().string();
    if (suffix != ".png" && suffix != ".svg" && suffix != ".pdf") continue;
    struct stat parent = {};
    const fs::path in = target.has_parent_path() ? target.parent_path() : fs::path(".");
    if (::stat(in.c_str(), &parent) != 0 || parent.st_dev != info.st_dev ||
        parent.st_ino != info.st_ino) {
      continue;
    }
    throw_input_error("{} might overwrite {}, which {} {}", what, use.path.string(), use.what,
                      use.writes ? "writes too" : "reads");
  }
}

}  // namespace longca
