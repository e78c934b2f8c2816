// SPDX-License-Identifier: BSD-3-Clause

/// weir-gate: stands between the network and a service, which starts it (lib/core/gate/process.cpp)
/// with its orders, the descriptor of its channel, and those of the sockets that listen.

#include "acceptor.hpp"
#include "gate/orders.hpp"
#include "rights.hpp"
#include "text/number.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const std::size_t count = std::min(words.size(), weir::gate::kOrderWords);
  const std::span all(words);
  const auto orders = weir::gate::orders_in(all.first(count));
  std::vector<int> descriptors;
  for (const std::string& word : all.subspan(count)) {
    descriptors.push_back(weir::text::parsed<int>(word).value_or(-1));
  }
  if (!orders || descriptors.size() < 2 || std::ranges::count(descriptors, -1) != 0) {
    std::fputs("weir-gate: is started by weir or weir-manager\n", stderr);
    return EXIT_FAILURE;
  }
  weir::gate::give_up_rights(descriptors);
  weir::gate::Acceptor acceptor(descriptors[0], {descriptors.begin() + 1, descriptors.end()},
                                *orders);
  acceptor.run();
  return EXIT_SUCCESS;
}
