#pragma once

#include <dlfcn.h>

#include <string>

namespace longca {

/// A shared library opened at run time. It is never closed: functions and kernels found in it live
/// as long as the process.
class SharedLibrary {
 public:
  /// Opens `file`, all of its symbols resolved and none visible to other libraries; false if the
  /// system refuses. A name without a slash is searched for in the system's folders.
  bool open(const std::string& file) {
    handle_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    return is_open();
  }
  bool is_open() const { return handle_ != nullptr; }
  /// As dlopen returned it; null if nothing is open.
  void* handle() const { return handle_; }
  /// Why the last `open` or `find` of this thread failed.
  static std::string error() {
    const char* text = ::dlerror();
    return text != nullptr ? text : "";
  }

  /// Makes `target` point to the function or variable called `symbol`; false, and null, if there is
  /// none.
  template <typename Target>
  bool find(const char* symbol, Target*& target) const {
    target = reinterpret_cast<Target*>(::dlsym(handle_, symbol));
    return target != nullptr;
  }
  /// The file that `function` was loaded from, or `otherwise` if the system does not know.
  template <typename Function>
  static std::string file_of(Function* function, const std::string& otherwise) {
    Dl_info info{};
    return ::dladdr(reinterpret_cast<void*>(function), &info) != 0 ? info.dli_fname : otherwise;
  }

 private:
  void* handle_ = nullptr;
};

}  // namespace longca
