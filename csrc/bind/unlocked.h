// Releases the GIL for a scope, and survives the end of the interpreter in that scope.
#pragma once

#include <Python.h>

#include <chrono>
#include <thread>

namespace headrace {

/// Used instead of pybind11::gil_scoped_release, which must not be used: up to Python 3.13 a daemon thread that asks
/// for the GIL while the interpreter ends is ended by pthread_exit. That unwinds the thread's stack, and at the first
/// noexcept destructor, such as gil_scoped_release's own, the process aborts ("terminate called without an active
/// exception"). Here the thread sleeps until the process is gone, as Python 3.14 lets it (gh-87135).
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() noexcept(false) {  // the unwinder must enter this function, to run ~Sleep
    Sleep if_ended;
    PyEval_RestoreThread(state_);
    if_ended.armed = false;
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  struct Sleep {
    bool armed = true;
    ~Sleep() {
      while (armed) std::this_thread::sleep_for(std::chrono::hours(1));
    }
  };

  PyThreadState* state_;
};

}  // namespace headrace
