// Plain threads over blocks of a range. No OpenMP: it clashes with other run-times and hangs
// after a fork.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "interrupt.hpp"

namespace sieve {

// How many of `count` columns make a block: few enough for all threads to have some to the end, and
// for a signal to be seen between two blocks. `work` is the multiplications of all columns.
inline int64_t block_size(int64_t count, double work, int threads) {
  constexpr double kWork = 1 << 25;  // some hundredths of a second
  constexpr int64_t kMost = 1024, kFewest = 8;
  const int64_t shared = threads > 1 ? std::max(kFewest, count / (8 * threads)) : kMost;
  const double brief = work > kWork ? static_cast<double>(count) * (kWork / work) : kMost;
  return std::max<int64_t>(1, std::min({kMost, shared, static_cast<int64_t>(brief)}));
}

// Calls work(first, last) for blocks that cover [0, count), from at most `threads` threads.
// The first exception is thrown again here, after all threads have ended. Between its blocks the
// calling thread asks for signals.
template <class Work>
void for_each_block(int64_t count, int64_t block, int threads, Work work) {
  std::atomic<int64_t> next{0};
  std::exception_ptr error;
  std::mutex error_guard;
  auto run = [&](auto before_each) {
    try {
      for (int64_t first; (first = next.fetch_add(block)) < count;) {
        before_each();
        work(first, std::min(first + block, count));
      }
    } catch (...) {
      next = count;
      std::lock_guard<std::mutex> lock(error_guard);
      if (!error) error = std::current_exception();
    }
  };
  const int64_t blocks = (count + block - 1) / block;
  std::vector<std::thread> helpers;
  try {
    for (int64_t t = 1; t < std::min<int64_t>(threads, blocks); ++t)
      helpers.emplace_back([&] { run([] {}); });
  } catch (const std::system_error&) {
    // The system grants no more threads; those there are do all the work.
  }
  Interrupt interrupt;
  run([&] { interrupt.poll(); });
  for (auto& helper : helpers) helper.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace sieve
