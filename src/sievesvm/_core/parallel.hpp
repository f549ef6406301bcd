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

namespace sieve {

// Calls work(first, last) for blocks that cover [0, count), from at most `threads` threads.
// The first exception is thrown again here, after all threads have ended.
template <class Work>
void for_each_block(int64_t count, int64_t block, int threads, Work work) {
  std::atomic<int64_t> next{0};
  std::exception_ptr error;
  std::mutex error_guard;
  auto run = [&] {
    try {
      for (int64_t first; (first = next.fetch_add(block)) < count;)
        work(first, std::min(first + block, count));
    } catch (...) {
      next = count;
      std::lock_guard<std::mutex> lock(error_guard);
      if (!error) error = std::current_exception();
    }
  };
  const int64_t blocks = (count + block - 1) / block;
  std::vector<std::thread> helpers;
  try {
    for (int64_t t = 1; t < std::min<int64_t>(threads, blocks); ++t) helpers.emplace_back(run);
  } catch (const std::system_error&) {
    // The system grants no more threads; those there are do all the work.
  }
  run();
  for (auto& helper : helpers) helper.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace sieve
