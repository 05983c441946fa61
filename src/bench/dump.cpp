#include "bench/dump.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "bench/axes.h"
#include "bench/npy.h"
#include "core/error.h"
#include "mask/mask_json.h"

namespace longca {

std::string dump_folder_name(const Case& c) {
  std::string name;
  for (const Axis& axis : axis_table()) {
    const auto value = axis.text(c);
    if (!value || axis.name == "pass" || axis.name == "mode") continue;
    if (!name.empty()) name += '_';
    if (axis.name != "kernel" && axis.name != "mask") name += axis.name + '-';
    for (const char letter : *value) name += letter == ':' ? 'x' : letter;
  }
  return name;
}

void dump_cell(const std::filesystem::path& folder, const Inputs& inputs, const Outputs& outputs,
               const GeneratedMask& generated, const MaskSpec& spec) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw_input_error("cannot make folder {}: {}", folder.string(), error.message());
  write_npy(folder / "q.npy", inputs.q.view());
  write_npy(folder / "k.npy", inputs.k.view());
  write_npy(folder / "v.npy", inputs.v.view());
  write_npy(folder / "do.npy", inputs.dout.view());
  write_npy(folder / "o.npy", outputs.o.view());
  write_npy(folder / "lse.npy", outputs.lse.view());
  if (outputs.dq.bytes() > 0) {
    write_npy(folder / "dq.npy", outputs.dq.view());
    write_npy(folder / "dk.npy", outputs.dk.view());
    write_npy(folder / "dv.npy", outputs.dv.view());
  }
  std::ofstream mask(folder / "mask.json");
  write_mask_json(mask, generated, spec);
  mask.close();
  if (!mask)
    throw_input_error("cannot write {}/mask.json: {}", folder.string(), std::strerror(errno));
}

}  // namespace longca
