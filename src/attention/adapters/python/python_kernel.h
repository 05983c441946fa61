#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attention/adapters/python/host_interface.h"
#include "attention/api/kernel.h"

namespace longca {

/// Whether a kernel's arguments can express a mask; the sentence is in its own terms.
using MaskRule = Support (*)(const Mask& mask);

/// A row of the benchmark whose kernel is called from Python.
struct PythonRow {
  Capabilities capabilities;
  std::string install;             ///< what to install where the package cannot be imported
  MaskRule can_express = nullptr;  ///< null: what the capabilities say
};

/// The kernels of Python packages. The one of name NAME is called by adapters/PACKAGE/NAME.py.
std::vector<PythonRow> python_rows();

/// A kernel whose calls are Python functions. Only a process that Python hosts can run it: there
/// `supports` and `plan` ask the Python side. Any other process knows what the row says, and
/// whether Python could not be started.
std::unique_ptr<Kernel> make_python_kernel(PythonRow row);

/// Whether a worker must be hosted by Python to run this kernel.
bool needs_python(const Kernel& kernel);

/// A problem as the C functions take it.
LongcaProblem to_c(const Problem& problem);

/// Marks this process as hosted by Python, whose functions are called from then on.
void set_python_callbacks(const LongcaCallbacks& callbacks);
/// What a survey found of a row's package.
struct PythonRowState {
  std::string reason;  ///< why it is unavailable, or empty
  std::string version;
};
/// Sets what the kernel answers in a process that Python does not host.
void set_python_row(const std::string& name, PythonRowState state);
/// Makes every Python kernel of this process `unavailable`, for that reason.
void set_python_unavailable(std::string reason);

/// What Python answered to one call; the `reply` of the C functions points to one.
struct PythonReply {
  Status status;
  std::map<std::string, std::string> notes;
  std::map<std::string, double> numbers;
};

}  // namespace longca
