// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/ring_messages.hpp"

#include "jobs/hexadecimal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <openssl/sha.h>
#include <vector>

namespace weir::jobs {
namespace {

constexpr std::size_t kDigestBytes = 8; // of SHA-256

void write_child(const Site& site, const placement::TreeChild& child, v1::Ring& ring) {
  v1::Child& made = *ring.add_children();
  made.set_port(site.ports[child.down]);
  if (child.is_rank()) {
    made.set_rank(child.first);
    return;
  }
  v1::SwitchBelow& below = *made.mutable_switch_below();
  below.set_name(site.name_of(child.below));
  below.set_first_rank(child.first);
  below.set_last_rank(child.first + child.count - 1);
}

plan::LinkId link_by(const Site& site, SwitchIndex at, const std::string& port) {
  for (const plan::LinkId link : site.topology().outgoing(site.index().vertex_of(at))) {
    if (site.ports[link] == port) {
      return link;
    }
  }
  throw UnknownPart(fmt::format("{} has no port '{}' in the topology", site.name_of(at), port));
}

SwitchIndex switch_of(const Site& site, const std::string& name) {
  const auto found = site.switch_named(name);
  if (!found) {
    throw UnknownPart(fmt::format("there is no switch '{}' in the topology", name));
  }
  return *found;
}

placement::TreeChild read_child(const Site& site, SwitchIndex at, const v1::Child& child) {
  const plan::LinkId down = link_by(site, at, child.port());
  if (!child.has_switch_below()) {
    return {.down = down, .first = child.rank(), .count = 1};
  }
  const v1::SwitchBelow& below = child.switch_below();
  return {.below = switch_of(site, below.name()),
          .down = down,
          .first = below.first_rank(),
          .count = below.last_rank() - below.first_rank() + 1};
}

} // namespace

void write_part(const Site& site, const placement::TreeSwitch& part, v1::Ring& ring) {
  const bool is_whole =
      part.parent == plan::kNone &&
      std::ranges::all_of(part.children, [](const auto& child) { return child.is_rank(); });
  if (is_whole) { // no other switch has a part
    for (const placement::TreeChild& child : part.children) {
      ring.mutable_members(static_cast<int>(child.first))->set_port(site.ports[child.down]);
    }
    return;
  }
  for (const placement::TreeChild& child : part.children) {
    write_child(site, child, ring);
  }
  if (part.parent != plan::kNone) {
    ring.mutable_parent()->set_name(site.name_of(part.parent));
    ring.mutable_parent()->set_port(site.ports[part.up]);
  }
}

placement::TreeSwitch read_part(const Site& site, SwitchIndex at, const v1::Ring& ring) {
  placement::TreeSwitch part{.at = at};
  for (const v1::Child& child : ring.children()) {
    part.children.push_back(read_child(site, at, child));
  }
  if (part.children.empty()) { // no other switch has a part
    for (const v1::Member& member : ring.members()) {
      part.children.push_back({.down = link_by(site, at, member.port()),
                               .first = static_cast<std::uint32_t>(part.children.size()),
                               .count = 1});
    }
  }
  if (ring.has_parent()) {
    part.parent = switch_of(site, ring.parent().name());
    part.up = link_by(site, at, ring.parent().port());
  }
  for (const placement::TreeChild& child : part.children) {
    part.first = part.count == 0 ? child.first : part.first;
    part.count += child.count;
  }
  return part;
}

std::uint64_t children_of(const v1::Ring& ring) {
  return static_cast<std::uint64_t>(ring.children_size() == 0 ? ring.members_size()
                                                              : ring.children_size());
}

std::string fold_shape_of(const v1::JobRecord& record) {
  std::vector<std::string> shapes;
  for (const v1::RingRecord& ring : record.rings()) {
    shapes.push_back(ring.shape());
  }
  const std::string text = fmt::format("{}", fmt::join(shapes, " "));
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return hexadecimal({reinterpret_cast<const char*>(digest.data()), kDigestBytes});
}

std::string explain_trees(const v1::JobRecord& record) {
  std::vector<std::string> trees;
  for (const v1::RingRecord& ring : record.rings()) {
    trees.push_back(
        fmt::format("ring {} over {}: {}", ring.id(), ring.parts(0).switch_name(), ring.shape()));
  }
  return fmt::format("{}", fmt::join(trees, "; "));
}

} // namespace weir::jobs
