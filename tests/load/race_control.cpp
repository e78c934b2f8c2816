// SPDX-License-Identifier: BSD-3-Clause

/// race_control none|queue|mbuf: two threads pass memory on, by a Handoff and by a pool, as lcores
/// do. With `queue` or `mbuf` one of them writes into it again after it has passed it on.
/// ThreadSanitizer must report this error, in spite of what happens_before.hpp tells it.
/// tests/load/races.py runs it.

#include "frame/frame.hpp"
#include "lab.hpp"
#include "lcore/handoff.hpp"
#include "lcore/mbuf_frame.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace {

using namespace weir;

enum class Mistake { none, queue, mbuf };

Mistake mistake_named(std::string_view name) {
  if (name == "none") {
    return Mistake::none;
  }
  if (name == "queue") {
    return Mistake::queue;
  }
  if (name == "mbuf") {
    return Mistake::mbuf;
  }
  throw std::invalid_argument(fmt::format("found '{}'; allowed: none, queue, mbuf", name));
}

void pass_by_queue(Mistake mistake) {
  lcore::Handoff<std::uint64_t*> queue("weir_race", 2);
  std::uint64_t memory = 0;
  std::thread taker([&] {
    std::array<std::uint64_t*, 1> taken{};
    while (queue.pop(taken) == 0) {
      std::this_thread::yield();
    }
    *taken[0] += 1;
  });
  memory = 1;
  queue.push(&memory);
  if (mistake == Mistake::queue) {
    memory = 2;
  }
  taker.join();
}

/// Takes an mbuf as a driver does before it receives into it.
rte_mbuf* take_mbuf(rte_mempool* pool) {
  void* mbuf = nullptr;
  while (rte_mempool_get(pool, &mbuf) != 0) {
    std::this_thread::yield();
  }
  return static_cast<rte_mbuf*>(mbuf);
}

void pass_by_pool(Mistake mistake) {
  rte_mempool* pool = rte_pktmbuf_pool_create("weir_race", 1, 0, lcore::kFrameBytesInMbuf,
                                              RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
  if (pool == nullptr) {
    throw std::runtime_error("no memory for a pool");
  }
  rte_mbuf* mbuf = take_mbuf(pool);
  std::thread taker([&] { lcore::make_frame(take_mbuf(pool), 1); });
  frame::Frame& frame = lcore::make_frame(mbuf, 0);
  lcore::free_mbuf(mbuf);
  if (mistake == Mistake::mbuf) {
    frame.ingress = 2;
  }
  taker.join();
}

} // namespace

int main(int argc, char** argv) {
  try {
    const Mistake mistake = mistake_named(argc == 2 ? argv[1] : "");
    const load::Eal eal(load::Roles::one_lcore);
    pass_by_queue(mistake);
    pass_by_pool(mistake);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    fmt::print(stderr, "race_control: {}\n", error.what());
    return 2;
  }
}
