#include "bench/plugin_loader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string_view>

#include "attention/api/plugin.h"
#include "bench/python_host.h"
#include "core/error.h"
#include "core/process.h"
#include "core/shared_library.h"

namespace longca {
namespace {

using EntryPoint = const PluginInfo* (*)();

constexpr const char* kCompileAgain =
    "compile it again with -I LONGCA/build/release/include, which ./longca writes";

/// Refuses a plug-in whose headers are not the program's: it would be miscalled.
void check_interface(const std::string& file) {
  const std::string interface = plugin_interface(file);
  if (interface.empty() || interface == plugin_interface()) return;
  throw_input_error("plug-in '{}' was compiled for plug-in interface {}, this program has {}: {}",
                    file, interface, plugin_interface(), kCompileAgain);
}

EntryPoint open_plugin(const std::string& file) {
  // A name without a slash would be searched for in the system's library folders.
  const std::string path = std::filesystem::absolute(file).string();
  if (!std::filesystem::exists(path)) throw_input_error("plug-in '{}' does not exist", file);
  check_interface(file);
  SharedLibrary library;
  if (!library.open(path)) {
    throw_input_error("plug-in '{}' cannot be loaded as a shared library: {}", file,
                      SharedLibrary::error());
  }
  EntryPoint entry = nullptr;
  if (!library.find("longca_plugin", entry)) {
    throw_input_error("plug-in '{}' is a shared library without the entry point longca_plugin",
                      file);
  }
  const char* interface = nullptr;
  if (!library.find("longca_plugin_interface", interface)) {
    throw_input_error(
        "plug-in '{}' was compiled for an earlier plug-in interface, this program has {}: {}", file,
        plugin_interface(), kCompileAgain);
  }
  return entry;
}

constexpr unsigned kLoadLimit = 60;  // s
constexpr std::string_view kLoaded = "loaded";

/// Where a child that loads a plug-in writes kLoaded, or why it could not.
int terminate_pipe = -1;

[[noreturn]] void report_and_end(std::string_view sentence) {
  [[maybe_unused]] const auto n = ::write(terminate_pipe, sentence.data(), sentence.size());
  ::_exit(1);
}

/// An exception that finds no handler, as one out of a static constructor.
[[noreturn]] void report_uncaught() {
  std::string what = "an exception";
  try {
    if (const auto current = std::current_exception()) std::rethrow_exception(current);
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  report_and_end("threw while loading: " + what);
}

[[noreturn]] void try_in_child(const std::string& file, int pipe) {
  terminate_pipe = pipe;
  ::alarm(kLoadLimit);
  std::set_terminate(report_uncaught);
  try {
    load_plugin(file);
  } catch (const InputError& error) {
    report_and_end(error.what());
  } catch (...) {
    report_uncaught();
  }
  report_and_end(kLoaded);
}

std::string read_to_end(int pipe) {
  std::string text;
  std::array<char, 4096> block;
  while (true) {
    const ssize_t n = ::read(pipe, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(block.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace

bool is_python_plugin(const std::string& file) {
  return file.ends_with(".py");
}

void load_plugin(const std::string& file) {
  const PluginInfo* info = nullptr;
  try {
    info = open_plugin(file)();
    if (info == nullptr || info->add_kernels == nullptr) {
      throw_input_error("plug-in '{}' says nothing of itself: longca_plugin() names no add_kernels",
                        file);
    }
    info->add_kernels(KernelRegistry::global());
  } catch (const InputError& error) {
    const std::string sentence = error.what();
    if (sentence.starts_with("plug-in '")) throw;
    throw_input_error("plug-in '{}': {}", file, sentence);
  } catch (const std::exception& error) {
    throw_input_error("plug-in '{}' threw while loading: {}", file, error.what());
  } catch (...) {
    throw_input_error("plug-in '{}' threw while loading, not a std::exception", file);
  }
}

void load_plugin_safely(const std::string& file) {
  if (is_python_plugin(file)) return load_python_plugin(file);
  std::array<int, 2> ends{};
  LONGCA_CHECK(::pipe(ends.data()) == 0, "no pipe: {}", std::strerror(errno));
  FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  const pid_t child = ::fork();
  LONGCA_CHECK(child >= 0, "no process: {}", std::strerror(errno));
  if (child == 0) {
    read_end.close();
    try_in_child(file, write_end.get());
  }
  write_end.close();
  const std::string sentence = read_to_end(read_end.get());
  const int status = wait_for_process(child);
  if (sentence == kLoaded) return load_plugin(file);
  if (sentence.starts_with("plug-in '")) throw InputError(sentence);
  throw_input_error("plug-in '{}' {}", file,
                    sentence.empty() ? describe_process_end(status) + " while loading" : sentence);
}

}  // namespace longca
