// What mpirun and the ranks print, in which the parent looks for the rank that ended.

#include "bench/launch/launcher.h"
#include "fuzz.h"

namespace longca::fuzz {

void fuzz(std::string_view text) {
  const LauncherReport report = read_launcher_report(std::string(text));
  require(!report.rank || *report.rank >= 0, "a rank below 0");
}

}  // namespace longca::fuzz
