// SPDX-License-Identifier: BSD-3-Clause

/// The host library's path of a small all-reduce, for callgrind: rank 1 of two starts a call and
/// waits for it, again and again, inside drive_calls(), whose instructions budget.py collects.
/// Prints the number of these calls.
///
/// budget_call BYTES    of each call

#include "host/api/group.hpp"
#include "support/echo_transport.hpp"
#include "support/free_address.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::size_t kCalls = 256;
constexpr std::size_t kMostBytes = 4096;

/// The first poll after a post is in vain, so that every call is waited for.
class LateTransport : public test::EchoTransport {
 public:
  using EchoTransport::EchoTransport;

  bool post(std::size_t channel, const host::OutgoingMessage& message) override {
    is_late_ = true;
    return EchoTransport::post(channel, message);
  }

  bool poll(host::TransportListener& listener) override {
    return !std::exchange(is_late_, false) && EchoTransport::poll(listener);
  }

 private:
  bool is_late_ = false;
};

host::Group form_group(std::uint16_t rank, const std::string& address) {
  host::GroupOptions options;
  options.rank = rank;
  options.rendezvous = address;
  return {options, std::make_unique<LateTransport>(static_cast<std::uint8_t>(rank))};
}

void make_calls(host::Group& group, std::vector<std::uint8_t>& data) {
  for (std::size_t call = 0; call < kCalls; ++call) {
    group
        .start_all_reduce(data.data(), data.data(), data.size(), DataType::u8,
                          Operation::bitwise_or)
        .wait();
  }
}

extern "C" [[gnu::noinline]] void drive_calls(host::Group& group, std::vector<std::uint8_t>& data) {
  make_calls(group, data);
}

/// Rank 0 is done before rank 1 begins, since valgrind runs one thread at a time: a rank that is
/// not run looks like one whose caller has gone.
void run_rank(std::uint16_t rank, const std::string& address, std::size_t bytes,
              std::latch& rank_0_is_done) {
  host::Group group = form_group(rank, address);
  std::vector<std::uint8_t> data(bytes);
  if (rank == 0) {
    make_calls(group, data);
    make_calls(group, data);
    rank_0_is_done.count_down();
    return;
  }
  rank_0_is_done.wait();
  make_calls(group, data); // warms up
  drive_calls(group, data);
}

} // namespace
} // namespace weir::bench

int main(int argc, char** argv) {
  using namespace weir;
  const std::size_t bytes = argc == 2 ? std::strtoul(argv[1], nullptr, 10) : 0;
  if (bytes == 0 || bytes > bench::kMostBytes) {
    std::fprintf(stderr, "usage: budget_call BYTES, at most %zu\n", bench::kMostBytes);
    return 2;
  }
  const std::string address = test::free_address();
  std::latch rank_0_is_done(1);
  std::thread rank_0([&] { bench::run_rank(0, address, bytes, rank_0_is_done); });
  bench::run_rank(1, address, bytes, rank_0_is_done);
  rank_0.join();
  std::printf("%zu\n", bench::kCalls);
  return 0;
}
