#include "bench/plugin_loader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "attention/api/plugin.h"
#include "bench/described_kernel.h"
#include "bench/process_answer.h"
#include "bench/python_host.h"
#include "bench/run/protocol.h"
#include "core/error.h"
#include "core/shared_library.h"

namespace longca {
namespace {

namespace fs = std::filesystem;
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
  const std::string path = fs::absolute(file).string();
  if (!fs::exists(path)) throw_input_error("plug-in '{}' does not exist", file);
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

/// Where the process that loads a plug-in sends its answer if an exception finds no handler, as one
/// out of a static constructor.
LineChannel* answer_channel = nullptr;

[[noreturn]] void report_uncaught() {
  std::string what = "an exception";
  try {
    if (const auto current = std::current_exception()) std::rethrow_exception(current);
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  answer_channel->send({{"error", "threw while loading: " + what}});
  ::_exit(1);
}

/// By name and device, which stand for one kernel.
std::map<std::pair<std::string, DeviceKind>, std::string>& plugins_by_kernel() {
  static std::map<std::pair<std::string, DeviceKind>, std::string> files;
  return files;
}

/// Runs `add`, which adds kernels of a file to the registry, and notes that they are its.
template <typename Add>
void note_kernels_of(const std::string& file, const Add& add) {
  const KernelRegistry& registry = KernelRegistry::global();
  const std::size_t before = registry.kernels().size();
  add();
  if (registry.kernels().size() == before) throw_input_error("plug-in '{}' adds no kernel", file);
  for (const auto& kernel : registry.kernels().subspan(before)) {
    const Capabilities& can = kernel->capabilities();
    plugins_by_kernel()[{can.name, can.device}] = file;
  }
}

[[noreturn]] void refuse(const std::string& file, const std::string& sentence) {
  if (sentence.starts_with("plug-in '")) throw InputError(sentence);
  throw_input_error("plug-in '{}' {}", file, sentence);
}

/// Adds the kernels of a plug-in in C++.
void add_described_kernels(const std::string& file, double limit_s) {
  const ProcessAnswer answer = ask_process(
      {"/proc/self/exe", "worker", "--describe", "--plugin", fs::absolute(file).string()}, limit_s);
  if (!answer.message) {
    refuse(file, answer.exit_code || answer.why.starts_with("was ") ? answer.why + " while loading"
                                                                    : answer.why);
  }
  try {
    if (answer.message->contains("error")) {
      refuse(file, answer.message->at("error").get<std::string>());
    }
    for (const auto& kernel : answer.message->at("kernels")) {
      KernelRegistry::global().add(make_described_kernel(kernel));
    }
  } catch (const nlohmann::json::exception&) {
    refuse(file, "describes its kernels by what is no description");
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

void describe_plugin(const std::string& file, double limit_s) {
  if (!fs::exists(file)) throw_input_error("plug-in '{}' does not exist", file);
  note_kernels_of(file, [&] {
    try {
      is_python_plugin(file) ? load_python_plugin(file, limit_s)
                             : add_described_kernels(file, limit_s);
    } catch (const InputError& error) {
      const std::string sentence = error.what();
      if (sentence.starts_with("plug-in '")) throw;
      throw_input_error("plug-in '{}': {}", file, sentence);
    }
  });
}

void answer_for_plugin(int socket, const std::string& file) {
  LineChannel channel(socket, take_secret());
  answer_channel = &channel;
  std::set_terminate(report_uncaught);
  const std::size_t before = KernelRegistry::global().kernels().size();
  try {
    load_plugin(file);
    nlohmann::json kernels = nlohmann::json::array();
    for (const auto& kernel : KernelRegistry::global().kernels().subspan(before)) {
      kernels.push_back(describe_kernel(*kernel));
    }
    channel.send({{"kernels", kernels}});
  } catch (const InputError& error) {
    channel.send({{"error", error.what()}});
  }
  ::_exit(0);  // nothing of the plug-in runs any more
}

std::string plugin_of(const std::string& kernel, DeviceKind device) {
  const DeviceKind its_own = KernelRegistry::global().find(kernel, device).capabilities().device;
  const auto found = plugins_by_kernel().find({kernel, its_own});
  return found == plugins_by_kernel().end() ? "" : found->second;
}

}  // namespace longca
