// Hostfiles of mpirun.

#include "bench/launch/rank_machine.h"
#include "fuzz.h"

namespace longca::fuzz {

void fuzz(std::string_view text) {
  const MemoryFile file(text);
  accepts([&] {
    const HostSlots slots = hostfile_slots(file.path());
    require(slots.all > 0 && slots.of_first_host > 0 && slots.of_first_host <= slots.all,
            "slots that are none");
  });
}

}  // namespace longca::fuzz
