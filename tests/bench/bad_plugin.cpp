// Plug-ins that cannot be loaded; BAD_PLUGIN says why.

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#define BAD_PLUGIN_THROWS 1
#define BAD_PLUGIN_EARLIER 2
#define BAD_PLUGIN_NO_ENTRY 3
#define BAD_PLUGIN_STATIC_THROWS 4
#define BAD_PLUGIN_CRASHES 5
#define BAD_PLUGIN_EXITS 6
#define BAD_PLUGIN_HANGS 7

#if BAD_PLUGIN == BAD_PLUGIN_EARLIER
/// As plug-ins were that carried a number and no hash.
extern "C" __attribute__((visibility("default"))) const void* longca_plugin() {
  std::abort();
}
#else

#include "attention/api/plugin.h"

namespace {

using namespace longca;

[[maybe_unused]] void add_kernels(KernelRegistry& /*registry*/) {
#if BAD_PLUGIN == BAD_PLUGIN_THROWS
  throw std::runtime_error("no licence for this kernel");
#elif BAD_PLUGIN == BAD_PLUGIN_CRASHES
  std::raise(SIGSEGV);
#elif BAD_PLUGIN == BAD_PLUGIN_EXITS
  std::_Exit(0);
#elif BAD_PLUGIN == BAD_PLUGIN_HANGS
  // Beyond the reach of an alarm, in a session of its own, with a child that has all descriptors.
  ::alarm(0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  if (::fork() == 0) ::setsid();
  while (true) ::pause();
#endif
}

#if BAD_PLUGIN == BAD_PLUGIN_STATIC_THROWS
const int at_load = [] {
  throw std::runtime_error("thrown by a static constructor");
  return 0;
}();
#endif

}  // namespace

#if BAD_PLUGIN != BAD_PLUGIN_NO_ENTRY
const longca::PluginInfo* longca_plugin() {
  static const PluginInfo info{.name = "bad", .add_kernels = add_kernels};
  return &info;
}
#endif
#endif
