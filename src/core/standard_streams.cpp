#include "core/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ext/stdio_sync_filebuf.h>
#include <iostream>
#include <string_view>

#include "core/output_file.h"

namespace longca {
namespace {

/// One of the two streams; its address is the stream's cookie.
struct StandardStream {
  int descriptor;
  const char* name;
  int error = 0;  ///< of the first write that failed
};
StandardStream out{STDOUT_FILENO, "standard output"};
StandardStream err{STDERR_FILENO, "standard error"};

ssize_t write_or_drop(void* cookie, const char* text, size_t size) {
  auto& stream = *static_cast<StandardStream*>(cookie);
  if (stream.error == 0) stream.error = write_all(stream.descriptor, {text, size});
  return static_cast<ssize_t>(size);
}

std::FILE* open_stream(StandardStream& stream, int buffering) {
  const cookie_io_functions_t functions{nullptr, write_or_drop, nullptr, nullptr};
  std::FILE* file = ::fopencookie(&stream, "w", functions);
  if (file != nullptr) std::setvbuf(file, nullptr, buffering, BUFSIZ);
  return file;
}

void open_closed_descriptors() {
  for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest number that is free: this one. Stays open for good, in child processes too.
    if (::open("/dev/null", O_RDWR) != descriptor) std::_Exit(71);
  }
}

}  // namespace

void guard_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  open_closed_descriptors();
  std::FILE* guarded_out = open_stream(out, ::isatty(STDOUT_FILENO) == 1 ? _IOLBF : _IOFBF);
  std::FILE* guarded_err = open_stream(err, _IONBF);
  if (guarded_out == nullptr || guarded_err == nullptr) return;  // no memory: the system's own
  std::fflush(stdout);
  stdout = guarded_out;
  stderr = guarded_err;
  // Never destroyed: what ends the process may still print.
  using Buffer = __gnu_cxx::stdio_sync_filebuf<char>;
  std::cout.rdbuf(new Buffer(guarded_out));
  std::cerr.rdbuf(new Buffer(guarded_err));
  std::clog.rdbuf(std::cerr.rdbuf());
}

LostOutput lost_output() {
  std::fflush(stdout);
  std::fflush(stderr);
  for (const StandardStream* stream : {&out, &err}) {
    if (stream->error != 0 && stream->error != EPIPE) return {stream->name, stream->error};
  }
  return {};
}

}  // namespace longca
