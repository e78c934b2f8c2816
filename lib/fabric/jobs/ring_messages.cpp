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
