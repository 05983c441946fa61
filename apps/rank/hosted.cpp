// The C function by which a Python process becomes a rank: see host.py, which calls it.

#include <string>
#include <vector>

#include "attention/adapters/python/python_kernel.h"
#include "bench/ranks/exit_codes.h"
#include "guarded.h"
#include "rank_program.h"

extern "C" {

/// run_rank_program with these arguments; the process's exit code.
int longca_run_rank(const char* address, const char* suite_hash, const char* const* plugins,
                    int plugin_count, const LongcaCallbacks* callbacks) {
  using namespace longca;
  return guarded(kRankFailed, [&] {
    set_python_callbacks(*callbacks);
    return run_rank_program({address, suite_hash, {plugins, plugins + plugin_count}, ""});
  });
}

}  // extern "C"
