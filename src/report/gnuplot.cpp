#include "report/gnuplot.h"

#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "bench/record/environment.h"
#include "core/error.h"
#include "core/output_file.h"
#include "core/process.h"

namespace longca {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

File temporary_file() {
  File file(std::tmpfile());
  if (!file) throw_input_error("cannot make a temporary file: {}", std::strerror(errno));
  return file;
}

std::string contents(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 4096> block;
  while (const std::size_t n = std::fread(block.data(), 1, block.size(), file)) {
    text.append(block.data(), n);
  }
  return text;
}

/// Runs gnuplot and returns its wait status. Its stdin, stdout and stderr are files, which cannot
/// block each other as pipes could. It writes the picture to stdout, so that no file name needs
/// gnuplot's quoting.
int spawn_and_wait(const std::filesystem::path& program, std::FILE* input, int picture,
                   std::FILE* messages) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(input), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, picture, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(messages), STDERR_FILENO);
  std::string name = program.string();
  std::array<char*, 2> argv = {name.data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawn(&child, name.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw_input_error("cannot start {}: {}", name, std::strerror(error));
  return wait_for_process(child);
}

/// The terminal for the format that the suffix names.
std::string terminal_command(const std::filesystem::path& file, int width, int height) {
  constexpr double kDotsPerInch = 96;
  constexpr int kScale = 2;  // png pixels per screen pixel, for sharp text
  const std::string suffix = file.extension().string();
  std::string terminal;
  if (suffix == ".png") {
    terminal = fmt::format("pngcairo noenhanced size {},{} font 'DejaVu Sans,10' fontscale {}",
                           width * kScale, height * kScale, kScale);
  } else if (suffix == ".svg") {
    terminal =
        fmt::format("svg noenhanced size {},{} dynamic font 'DejaVu Sans,13' background 'white'",
                    width, height);
  } else if (suffix == ".pdf") {
    terminal = fmt::format("pdfcairo noenhanced size {:.3f}in,{:.3f}in font 'DejaVu Sans,10'",
                           width / kDotsPerInch, height / kDotsPerInch);
  } else {
    throw_input_error("cannot draw {}: its suffix '{}' is not .png, .svg or .pdf", file.string(),
                      suffix);
  }
  return fmt::format("set terminal {}\n", terminal);
}

void run_gnuplot(const std::filesystem::path& program, const std::string& script, int picture) {
  const File input = temporary_file();
  const File messages = temporary_file();
  if (std::fwrite(script.data(), 1, script.size(), input.get()) != script.size() ||
      std::fflush(input.get()) != 0) {
    throw_input_error("cannot write a temporary file: {}", std::strerror(errno));
  }
  std::rewind(input.get());
  const int status = spawn_and_wait(program, input.get(), picture, messages.get());
  // gnuplot prints the offending line and a caret first; the last line is the reason.
  if (status != 0) throw_input_error("gnuplot failed: {}", last_line(contents(messages.get())));
}

}  // namespace

std::string gnuplot_quoted(std::string_view text) {
  constexpr const char* kApostrophe = "\u2019";
  std::string quoted = "'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'') {
      quoted += kApostrophe;
    } else {
      quoted += byte < 0x20 || byte == 0x7f ? ' ' : c;
    }
  }
  return quoted + "'";
}

void draw_with_gnuplot(const std::filesystem::path& file, int width, int height,
                       const std::string& script) {
  const std::string terminal = terminal_command(file, width, height);
  const auto program = find_gnuplot();
  if (!program) {
    throw InputError("drawing needs gnuplot, which is not installed: apt-get install gnuplot-nox");
  }
  OutputFile picture(file);
  run_gnuplot(*program, terminal + script, picture.descriptor());
  picture.commit();
}

}  // namespace longca
