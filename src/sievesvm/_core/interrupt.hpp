// Ctrl-C during long work of the core.
#pragma once
#include <nanobind/nanobind.h>

#include <chrono>

namespace sieve {

// Asks Python now and then whether a signal has come. One for each call from Python, used by the
// calling thread alone: a signal is handled by the main thread or not at all.
class Interrupt {
 public:
  // Throws what the handler of a signal raised (KeyboardInterrupt). Cheap between the questions.
  void poll() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    {
      nanobind::gil_scoped_acquire held;
      if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    }
    next_ = std::chrono::steady_clock::now() + kEvery;
  }

 private:
  static constexpr std::chrono::milliseconds kEvery{50};
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + kEvery;
};

}  // namespace sieve
