// SPDX-License-Identifier: BSD-3-Clause
#include "handoff_check.hpp"

#include "lcore/handoff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

namespace weir::load {
namespace {

constexpr unsigned kEntries = 64;
constexpr std::size_t kBlocks = 40; // fewer than entries: a push must not fail
constexpr std::size_t kMostAtOnce = 8;

/// Plain memory, like a frame: only the queue orders the two threads' accesses.
struct Block {
  std::uint64_t number = 0;
  std::array<std::uint64_t, 16> words{};

  void fill(std::uint64_t value) {
    number = value;
    words.fill(value * 0x9e3779b97f4a7c15);
  }

  bool holds(std::uint64_t value) const {
    return number == value && std::all_of(words.begin(), words.end(), [value](std::uint64_t word) {
             return word == value * 0x9e3779b97f4a7c15;
           });
  }
};

using Queue = lcore::Handoff<Block*>;

/// Takes `times` blocks and sends each on with a number that is kBlocks higher. The two sides
/// alternate, kBlocks numbers at a time.
std::string pass_on(Queue& from, Queue& to, std::uint64_t first, std::uint64_t times) {
  std::array<Block*, kMostAtOnce> burst;
  std::uint64_t taken = 0;
  while (taken < times) {
    const unsigned count =
        from.pop(std::span(burst).first(std::min<std::uint64_t>(kMostAtOnce, times - taken)));
    for (unsigned i = 0; i < count; ++i, ++taken) {
      const std::uint64_t round = taken / kBlocks * 2 * kBlocks;
      const std::uint64_t due = first + round + taken % kBlocks;
      if (!burst[i]->holds(due)) {
        return fmt::format("value {}: found block {}, or its memory changed", due,
                           burst[i]->number);
      }
      burst[i]->fill(due + kBlocks);
      if (!to.push(burst[i])) {
        return fmt::format("value {}: a queue of {} has no room for {}", due, kEntries, kBlocks);
      }
    }
    if (count == 0) {
      std::this_thread::yield();
    }
  }
  return {};
}

} // namespace

std::string check_handoff(std::uint64_t times) {
  Queue there("weir_check_there", kEntries);
  Queue back("weir_check_back", kEntries);
  std::vector<Block> blocks(kBlocks);
  for (std::size_t i = 0; i < kBlocks; ++i) {
    blocks[i].fill(i);
    there.push(&blocks[i]);
  }
  std::string wrong_there;
  std::thread other([&] { wrong_there = pass_on(there, back, 0, times); });
  const std::string wrong_back = pass_on(back, there, kBlocks, times);
  other.join();
  return wrong_there + wrong_back;
}

} // namespace weir::load
