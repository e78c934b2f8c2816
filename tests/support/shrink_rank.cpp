// SPDX-License-Identifier: BSD-3-Clause

/// One rank of a group of which one rank kills itself in the middle of a call; the others shrink
/// the group and go on, in the same registered memory.
///
///   shrink_rank RANK WORLD RENDEZVOUS RING DEVICE VICTIM RING_OF_THE_REST
///
/// Element i of every rank is its first rank x 1000 + i mod 1000, so that a sum tells whose parts
/// it has. The victim ends by SIGKILL. Each other one ends with "shrink_rank: exact among N by way
/// of the switch" (or "ring") and status 0.

#include "verbs_rank.hpp"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kElements = 1 << 18;
constexpr int kRounds = 3;
constexpr milliseconds kLifeInTheCall{60};

using Tensor = std::vector<std::uint32_t>;
/// The rank that a rank of the group had at first.
using FirstRank = std::function<std::uint32_t(std::uint16_t)>;

std::uint32_t element(std::uint32_t first_rank, std::size_t i) {
  return first_rank * 1000 + static_cast<std::uint32_t>(i % 1000);
}

void fill(Tensor& tensor, std::uint32_t first_rank) {
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    tensor[i] = element(first_rank, i);
  }
}

void expect_sum(const Tensor& tensor, const weir::Group& group, const FirstRank& first_rank) {
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    std::uint32_t due = 0;
    for (std::uint16_t rank = 0; rank < group.world(); ++rank) {
      due += element(first_rank(rank), i);
    }
    if (tensor[i] != due) {
      throw std::runtime_error("element " + std::to_string(i) + " is " + std::to_string(tensor[i]) +
                               ", should be " + std::to_string(due));
    }
  }
}

void reduce(weir::Group& group, Tensor& tensor, const FirstRank& first_rank) {
  for (int round = 0; round < kRounds; ++round) {
    fill(tensor, first_rank(group.rank()));
    group.all_reduce(std::span(tensor), WEIR_SUM);
    expect_sum(tensor, group, first_rank);
  }
}

[[noreturn]] void die_in_the_middle(weir::Group& group, Tensor& tensor) {
  weir::Request request = weir::verbs_rank::sum_of_all_under_way(group, tensor);
  request.wait_for(kLifeInTheCall);
  std::raise(SIGKILL);
  std::abort();
}

/// Until a call says that the victim has died.
void outlive(weir::Group& group, Tensor& tensor, int victim) {
  try {
    while (true) {
      group.all_reduce(std::span(tensor), WEIR_SUM);
    }
  } catch (const weir::Error& error) {
    if (error.status() != WEIR_PEER_DIED || error.rank() != victim) {
      throw;
    }
  }
}

void run(char** arguments) {
  const std::uint32_t ring = weir::verbs_rank::ring_number(arguments[4]);
  const std::uint32_t ring_of_the_rest = weir::verbs_rank::ring_number(arguments[7]);
  const int victim = std::atoi(arguments[6]);
  const weir::Context context = weir::verbs_rank::context(arguments[5]);
  Tensor tensor(kElements);
  const weir::Memory memory(context, std::span(tensor));
  weir::GroupOptions options = weir::verbs_rank::group_options(arguments, ring);
  weir::Group group(context, options);
  reduce(group, tensor, [](std::uint16_t rank) { return rank; });
  if (group.rank() == victim) {
    die_in_the_middle(group, tensor);
  }
  outlive(group, tensor, victim);
  options.rings = &ring_of_the_rest;
  options.fallback = WEIR_FALLBACK_RING;
  weir::Group rest = group.shrink(options);
  reduce(rest, tensor, [&rest](std::uint16_t rank) { return rest.parent_rank(rank).value(); });
  std::printf("shrink_rank: exact among %d by way of the %s\n", rest.world(),
              std::string(rest.algorithm()).c_str());
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::puts("usage: shrink_rank RANK WORLD RENDEZVOUS RING DEVICE VICTIM RING_OF_THE_REST");
    return 2;
  }
  try {
    run(argv);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::printf("shrink_rank: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
