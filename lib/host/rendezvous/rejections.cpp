// SPDX-License-Identifier: BSD-3-Clause
#include "host/rendezvous/rejections.hpp"

#include <fmt/format.h>

#include <numeric>
#include <string_view>
#include <vector>

namespace weir::host {

std::uint64_t Rejections::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

std::string Rejections::describe() const {
  constexpr std::array<std::string_view, kKinds> words{"that did not speak this protocol",
                                                       "of another job",
                                                       "with another secret",
                                                       "without the secret",
                                                       "with a secret, which rank 0 lacks",
                                                       "that named no rank of this job",
                                                       "as a rank that is here already"};
  std::vector<std::string> parts;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if (counts_[kind] != 0) {
      parts.push_back(fmt::format("{} {}", counts_[kind], words[kind]));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

} // namespace weir::host
