// Runs a function in a forked child, for tests of forks and of limits that must not stay in this process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace headrace::test {

/// Whether `body`, a function returning bool, returned true in a child. One that hangs is ended after `seconds`: false.
template <typename Body>
bool in_child(Body body, unsigned seconds = 60) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(seconds);
    bool fine = false;
    try {
      fine = body();
    } catch (...) {
    }
    _exit(fine ? 0 : 1);  // no destructors of the parent's statics, no report of doctest
  }
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace headrace::test
