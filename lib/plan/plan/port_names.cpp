// SPDX-License-Identifier: BSD-3-Clause
#include "plan/port_names.hpp"

#include "text/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace weir::plan {
namespace {

constexpr std::string_view kPlainCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

bool is_plain(std::string_view name) {
  return !name.empty() && name.find_first_not_of(kPlainCharacters) == std::string_view::npos;
}

} // namespace

std::string plain(std::string name) {
  for (char& c : name) {
    c = kPlainCharacters.find(c) == std::string_view::npos ? '-' : c;
  }
  return name;
}

Ports::Ports(const Topology& topology, VertexId at) : topology_(topology), at_(at) {
  links_.assign(topology.outgoing(at).begin(), topology.outgoing(at).end());
  std::ranges::sort(links_);
  names_.resize(links_.size());
  for (std::size_t port = 0; port < links_.size(); ++port) {
    take_given(port);
  }
  for (std::size_t port = 0; port < links_.size(); ++port) {
    if (names_[port].empty()) {
      name_after_peer(port);
    }
  }
}

const std::string& Ports::name(LinkId link) const {
  return names_[static_cast<std::size_t>(std::ranges::find(links_, link) - links_.begin())];
}

void Ports::take_given(std::size_t port) {
  const std::string name = topology_.port(links_[port]);
  if (name.empty()) {
    return;
  }
  if (!is_plain(name) || !taken_.insert(name).second) {
    throw PlanError(fmt::format("{} has a port {}; allowed: names of letters, digits, '_', '.' "
                                "and '-', each once, but not all or json",
                                topology_.name(at_), text::json_string(name)));
  }
  names_[port] = name;
}

void Ports::name_after_peer(std::size_t port) {
  const std::string peer = plain(topology_.name(topology_.link(links_[port]).to));
  names_[port] = peer;
  for (unsigned number = 2; !taken_.insert(names_[port]).second; ++number) {
    names_[port] = fmt::format("{}-{}", peer, number);
  }
}

} // namespace weir::plan
