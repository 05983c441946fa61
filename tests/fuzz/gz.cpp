// Compressed record files: what a reader of a path makes of any bytes.

#include "bench/record/record.h"
#include "fuzz.h"

namespace longca::fuzz {

void fuzz(std::string_view text) {
  const MemoryFile file(text);
  accepts([&] { read_records(file.path()); });
}

}  // namespace longca::fuzz
