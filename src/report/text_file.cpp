#include "report/text_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/error.h"

namespace longca {

void write_text_file(const std::filesystem::path& path, std::string_view text) {
  const auto require = [&](bool ok) {
    if (!ok) throw_input_error("cannot write {}: {}", path.string(), std::strerror(errno));
  };
  std::ofstream out(path, std::ios::binary);
  require(out.is_open());
  out << text << std::flush;
  require(out.good());
}

}  // namespace longca
