#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/suite/case.h"
#include "core/status.h"

namespace longca {

/// The command that starts a Python process which loads this program as a library and then is a
/// worker: $LONGCA_PYTHON or python3, host.py, and the plug-ins. "--socket N" is to be appended.
/// The library and host.py lie beside the program.
std::vector<std::string> python_worker_command(const std::vector<std::string>& plugins);

/// The same for a rank, which takes longca-rank's arguments, appended.
std::vector<std::string> python_rank_command();

/// Whether a plug-in or a case's kernel is in Python. Without GPUs (`gpus`), a GPU's kernel does
/// not count: it is refused before Python is asked.
bool wants_python(const std::vector<std::string>& plugins, std::span<const Case> cases, bool gpus);

/// Adds the arguments to a worker's command that make it compile ahead for `cases`, before the
/// first of them runs, in processes of their own.
void add_cases_ahead(std::vector<std::string>& command, std::span<const Case> cases);

/// Whether a Python process starts, or `unavailable` and what is missing; tried once.
const Support& python_available();

/// Asks a Python process which packages of the Python rows are installed, for `supports` of this
/// process. Takes the seconds of importing them.
void survey_python_rows();

/// Asks a Python process for the kernels of a plug-in in Python, within `limit_s` seconds, and adds
/// them to KernelRegistry::global(). Throws InputError: no Python, a file that cannot be imported
/// or lacks one of the calls, a name taken.
void load_python_plugin(const std::string& file, double limit_s);

/// Adds a kernel that a plug-in in Python describes:
///   {"name", "description", "origin", "device": "cpu|cuda", "dtypes": […], "head_dims": […],
///    "gqa", "backward", "deterministic", "returns_lse", "static_masks", "block_masks"}
/// of which all but the first are optional: float32 on the CPU, not deterministic, everything else
/// yes. Throws InputError that names the key.
void add_python_kernel(const nlohmann::json& description);

}  // namespace longca
