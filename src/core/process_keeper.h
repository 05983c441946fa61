#pragma once

#include <sys/types.h>

#include <csignal>
#include <span>

namespace longca {

/// What a keeper starts. Everything pointed to was made before the fork.
struct KeptProgram {
  char* const* arguments = nullptr;    ///< as execve's; the first is the program's path
  char* const* environment = nullptr;  ///< as execve's
  int output = -1;                     ///< becomes its stdout and stderr
  std::span<const int> inherited{};    ///< descriptors that it gets under their own numbers
  bool inherits_all = false;           ///< every descriptor without FD_CLOEXEC
  int death_signal = SIGKILL;          ///< sent to it when the parent dies
};

/// Signals to a keeper.
inline constexpr int kEndAll = SIGTERM;    ///< kill the program and its descendants at once
inline constexpr int kAskToEnd = SIGUSR1;  ///< send the program SIGTERM

/// The life of a keeper: a process between this program's and the one that it starts, which no
/// descendant of that one outlives, whatever group or session it has moved to: the keeper is their
/// subreaper. Called in a fork of `parent` with every signal blocked; `mask` is the one to give
/// back. Writes to the pipe `answers` the program's process id, then, once it and all descendants
/// are gone, waitpid's status of it, and ends. Where the parent dies, sends the program its death
/// signal, and a few seconds later kills what is left.
[[noreturn]] void keep_program(const KeptProgram& program, pid_t parent, const sigset_t& mask,
                               int answers);

/// The same for a program that others start, as mpirun starts a rank: returns in a fork, and the
/// process that called it becomes the keeper. It passes signals on, and ends as the fork does, by
/// its exit code or signal, once no descendant is left; half a second after SIGTERM, and when the
/// parent dies, it kills them all. To be called before there are threads. False, in the caller, if
/// the system refuses a process.
bool keep_descendants();

}  // namespace longca
