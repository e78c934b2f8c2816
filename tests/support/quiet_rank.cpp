// SPDX-License-Identifier: BSD-3-Clause

/// One rank of groups that end in the middle of a call, one after the other, in memory that the NIC
/// writes by itself.
///
///   quiet_rank RANK WORLD RENDEZVOUS RING DEVICE
///
/// Rank 1 aborts when all ranks are in the call. Once its call has failed, each rank writes a
/// pattern over the tensor, and looks a second later whether it is still there. Ends with
/// "quiet_rank: nothing was written after the end" and status 0.

#include "verbs_rank.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using std::chrono::milliseconds;

constexpr int kRounds = 5;
constexpr std::size_t kElements = 1 << 20;
constexpr std::uint32_t kPattern = 0x5a5a5a5a;
constexpr std::uint16_t kAborter = 1;

weir::GroupOptions options_of(char** arguments, const std::uint32_t& ring) {
  weir::GroupOptions options = weir::verbs_rank::group_options(arguments, ring);
  options.ack_timeout_ms = 67; // losses are repeated soon
  return options;
}

weir::Request abort_in_the_middle(weir::Group& group, std::vector<std::uint32_t>& tensor,
                                  int round) {
  weir::Request request = weir::verbs_rank::sum_of_all_under_way(group, tensor);
  request.wait_for(milliseconds(50 + 20 * round));
  group.abort();
  return request;
}

void fail_in_the_middle(weir::Group& group, std::vector<std::uint32_t>& tensor, int round) {
  weir::Request request = group.rank() == kAborter
                              ? abort_in_the_middle(group, tensor, round)
                              : group.start_all_reduce(std::span(tensor), WEIR_SUM);
  try {
    request.wait();
  } catch (const weir::Error& error) {
    if (error.status() == WEIR_ABORTED) {
      return;
    }
    throw;
  }
  throw std::runtime_error("the call was over too soon");
}

std::size_t written_later(std::vector<std::uint32_t>& tensor) {
  std::ranges::fill(tensor, kPattern);
  std::this_thread::sleep_for(milliseconds(1000));
  return static_cast<std::size_t>(std::ranges::count_if(
      tensor, [](const volatile std::uint32_t& element) { return element != kPattern; }));
}

void run(char** arguments) {
  const std::uint32_t ring = weir::verbs_rank::ring_number(arguments[4]);
  const weir::Context context = weir::verbs_rank::context(arguments[5]);
  std::vector<std::uint32_t> tensor(kElements);
  const weir::Memory memory(context, std::span(tensor));
  for (int round = 0; round < kRounds; ++round) {
    std::ranges::fill(tensor, 1);
    weir::Group group(context, options_of(arguments, ring));
    fail_in_the_middle(group, tensor, round);
    if (const std::size_t written = written_later(tensor); written != 0) {
      throw std::runtime_error("round " + std::to_string(round) + ": " + std::to_string(written) +
                               " elements were written after the end");
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::puts("usage: quiet_rank RANK WORLD RENDEZVOUS RING DEVICE");
    return 2;
  }
  try {
    run(argv);
    std::puts("quiet_rank: nothing was written after the end");
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::printf("quiet_rank: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
