// SPDX-License-Identifier: BSD-3-Clause

/// weir-gate: stands between the network and the control service of a switch, which starts it
/// (lib/controlplane/gate/process.cpp) with the files of its TLS, the descriptor of its channel,
/// and those of the sockets that listen.

#include "acceptor.hpp"
#include "rights.hpp"
#include "text/number.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

int main(int argc, char** argv) {
  constexpr std::size_t files = 3;
  const std::span words(argv + 1, static_cast<std::size_t>(argc > 1 ? argc - 1 : 0));
  std::vector<int> descriptors;
  for (std::size_t word = files; word < words.size(); ++word) {
    descriptors.push_back(weir::text::parsed<int>(words[word]).value_or(-1));
  }
  if (descriptors.size() < 2 || std::ranges::count(descriptors, -1) != 0) {
    std::fputs("weir-gate: is started by weir\n", stderr);
    return EXIT_FAILURE;
  }
  weir::gate::give_up_rights(descriptors);
  weir::gate::Acceptor acceptor(
      descriptors[0], {descriptors.begin() + 1, descriptors.end()},
      {.certificate = words[0], .key = words[1], .client_authority = words[2]});
  acceptor.run();
  return EXIT_SUCCESS;
}
