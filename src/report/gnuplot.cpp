#include "report/gnuplot.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>
#include <vector>

#include "bench/record/environment.h"
#include "core/error.h"
#include "core/output_file.h"
#include "core/printable.h"
#include "core/process.h"

namespace longca {
namespace {

using namespace std::chrono_literals;

constexpr const char* kScript = "script.gp";
constexpr const char* kPicture = "picture";

/// A folder of its own for one run of gnuplot, removed with all that is in it.
class ScratchFolder {
 public:
  ScratchFolder()
      : path_((std::filesystem::temp_directory_path() / "longca-plot-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) {
      throw_input_error("cannot make folder {}: {}", path_, std::strerror(errno));
    }
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  std::filesystem::path operator/(const char* name) const {
    return std::filesystem::path(path_) / name;
  }

 private:
  std::string path_;
};

/// gnuplot without the user's start-up files (-d) and variables, in a folder of its own, so that a
/// figure depends on its script alone, and no file name needs gnuplot's quoting.
std::vector<std::string> gnuplot_command(const std::string& program, const ScratchFolder& folder) {
  std::vector<std::string> command{"/usr/bin/env", "-i", "--chdir=" + folder.path(),
                                   "HOME=" + folder.path(), "LC_ALL=C.UTF-8"};
  for (const char* name : {"PATH", "LD_LIBRARY_PATH"}) {
    if (const char* value = std::getenv(name)) command.push_back(fmt::format("{}={}", name, value));
  }
  command.insert(command.end(), {program, "-d", kScript});
  return command;
}

/// The terminal for the format that the suffix names.
std::string terminal_command(const std::filesystem::path& file, int width, int height) {
  constexpr double kDotsPerInch = 96;
  constexpr double kDotsPerPoint = kDotsPerInch / 72;  // sizes are in dots where it is svg
  constexpr int kScale = 2;  // png pixels per screen pixel, for sharp text
  const std::string suffix = file.extension().string();
  std::string terminal;
  if (suffix == ".png") {
    terminal = fmt::format(
        "pngcairo noenhanced size {0},{1} font 'DejaVu Sans,10' fontscale {2} linewidth {2} "
        "pointscale {2}",
        width * kScale, height * kScale, kScale);
  } else if (suffix == ".svg") {
    terminal = fmt::format(
        "svg noenhanced size {},{} dynamic font 'DejaVu Sans,10' fontscale {:.4g} "
        "background 'white'",
        width, height, kDotsPerPoint);
  } else if (suffix == ".pdf") {
    terminal = fmt::format("pdfcairo noenhanced size {:.3f}in,{:.3f}in font 'DejaVu Sans,10'",
                           width / kDotsPerInch, height / kDotsPerInch);
  } else {
    throw_input_error("cannot draw {}: its suffix '{}' is not .png, .svg or .pdf", file.string(),
                      suffix);
  }
  return fmt::format("set terminal {}\n", terminal);
}

/// What gnuplot draws by the script.
std::string picture_of(const std::filesystem::path& program, const std::string& script,
                       std::chrono::milliseconds limit) {
  const ScratchFolder folder;
  replace_file(folder / kScript, fmt::format("set output '{}'\n{}", kPicture, script));
  ChildProcess gnuplot(gnuplot_command(program.string(), folder));
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!gnuplot.has_ended() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(5ms);
  }
  const bool is_late = !gnuplot.has_ended();
  const int status = gnuplot.kill();
  if (is_late) {
    throw_input_error("gnuplot did not end within {} s", static_cast<double>(limit.count()) / 1e3);
  }
  // gnuplot prints the offending line and a caret first; the last line is the reason.
  if (status != 0) throw_input_error("gnuplot failed: {}", last_line(gnuplot.take_output()));
  std::ifstream picture(folder / kPicture, std::ios::binary);
  return {std::istreambuf_iterator<char>(picture), {}};
}

}  // namespace

std::string gnuplot_quoted(std::string_view text) {
  constexpr std::string_view kApostrophe = "\u2019";
  constexpr std::string_view kFirstUndrawn = "\u2e80";  // bytes of UTF-8 sort as characters do
  const std::string shown = printable(text);
  std::string quoted = "'";
  for (std::string_view rest = shown; !rest.empty();) {
    std::size_t size = 1;
    while (size < rest.size() && (static_cast<unsigned char>(rest[size]) & 0xc0) == 0x80) ++size;
    const std::string_view character = rest.substr(0, size);
    quoted += character == "'" ? kApostrophe : character < kFirstUndrawn ? character : "?";
    rest.remove_prefix(size);
  }
  return quoted + "'";
}

void draw_with_gnuplot(const std::filesystem::path& file, int width, int height,
                       const std::string& script, std::chrono::milliseconds deadline) {
  const std::string terminal = terminal_command(file, width, height);
  const auto program = find_gnuplot();
  if (!program) {
    throw InputError("drawing needs gnuplot, which is not installed: apt-get install gnuplot-nox");
  }
  replace_file(file, picture_of(*program, terminal + script, deadline));
}

}  // namespace longca
