// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/node_formation.hpp"

#include "host/collective/message_window.hpp"
#include "host/transport/lone_transport.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace weir::host {
namespace {

// What fits in the caches with the other ranks' portions, and costs little beside what is said of
// it.
constexpr std::size_t kLocalPortionBytes = std::size_t{128} << 10;
// Longer messages are portions themselves.
constexpr std::size_t kSwitchPortionBytes = std::size_t{64} << 10;
// One portion after the other goes round the hosts' ring.
constexpr std::size_t kRingPortionBytes = std::size_t{512} << 10;
constexpr std::size_t kFewSlots = 4;

} // namespace

void NodeFormation::find(const std::vector<Introduction>& introductions) {
  std::vector<Resident> residents;
  for (std::uint16_t rank = 0; rank < introductions.size(); ++rank) {
    const auto& [incarnation, source, residence, address] = introductions[rank];
    residents.push_back(
        {residence, residence.is_known() ? ip_of(address, rank) : wire::IpAddress()});
  }
  try {
    membership_.nodes = NodeMap(residents);
  } catch (const Error& error) {
    rendezvous_.abandon(error);
  }
  if (!membership_.nodes.is_shared()) {
    return;
  }
  if (!leads() || is_all()) {
    membership_.transport = make_lone_transport();
  }
  auto transport = std::make_unique<NodeTransport>(std::move(membership_.transport));
  transport_ = transport.get();
  membership_.transport = std::move(transport);
}

std::uint16_t NodeFormation::leader_after(unsigned distance) const {
  const unsigned nodes = membership_.nodes.nodes();
  return membership_.nodes.leader_of(static_cast<std::uint16_t>((node() + distance) % nodes));
}

std::unique_ptr<Reducer> NodeFormation::around(std::unique_ptr<Reducer> between) {
  if (transport_ == nullptr) {
    return between;
  }
  auto reducer =
      std::make_unique<NodeReducer>(membership_.nodes, options_.rank, std::move(between));
  reducers_.push_back(reducer.get());
  return reducer;
}

/// Leaders exchange portions, so a portion is as long on all nodes. There are as many slots as a
/// window of messages needs, and some for what is folded meanwhile.
NodeGeometry NodeFormation::geometry(std::size_t channels) const {
  NodeGeometry geometry{.ranks =
                            static_cast<std::uint16_t>(membership_.nodes.ranks_of(node()).size()),
                        .channels = channels,
                        .slots = kFewSlots,
                        .portion_bytes = kRingPortionBytes};
  if (membership_.algorithm == Algorithm::local) {
    geometry.portion_bytes = kLocalPortionBytes;
  } else if (membership_.algorithm == Algorithm::in_switch) {
    const std::size_t message = WindowConfig{.message_bytes = options_.message_bytes}.data_bytes();
    const std::size_t messages = std::max<std::size_t>(1, kSwitchPortionBytes / message);
    geometry.portion_bytes = messages * message;
    geometry.slots += (options_.window + messages - 1) / messages;
  }
  return geometry;
}

NodeDescriptors NodeFormation::meet(const NodeGeometry& geometry) {
  const std::uint16_t leader = membership_.nodes.leader_of(node());
  const NodeWait wait{.deadline = deadline_after(Clock::now(), options_.form_timeout),
                      .meanwhile = [this] { rendezvous_.look_at_others(); },
                      .leader = leader,
                      .rank = options_.rank};
  std::optional<NodeDoor> door;
  if (leads() && geometry.ranks > 1) {
    door.emplace(leader);
  }
  const std::vector<Blob> invitations =
      rendezvous_.gather(door ? door->invitation() : Blob(), "where the ranks of its NIC meet");
  if (!leads()) {
    return come_to_node(invitations[leader], membership_.nodes.place_of(options_.rank),
                        geometry.ranks, wait);
  }
  NodeDescriptors descriptors = make_node_descriptors(geometry);
  if (door) {
    door->hand_out(descriptors, membership_.nodes.ranks_of(node()), wait);
  }
  return descriptors;
}

std::vector<std::unique_ptr<Reducer>>
NodeFormation::share(const std::vector<std::size_t>& channels) {
  std::vector<std::unique_ptr<Reducer>> made;
  if (transport_ == nullptr) {
    return made;
  }
  const NodeGeometry geometry = this->geometry(channels.size());
  try {
    membership_.node_memory = std::make_shared<NodeMemory>(
        geometry, membership_.nodes.place_of(options_.rank), meet(geometry));
  } catch (const Error& error) {
    rendezvous_.abandon(error);
  }
  const bool has_reducers = !reducers_.empty();
  for (std::size_t channel = 0; channel < channels.size(); ++channel) {
    if (!has_reducers) {
      made.push_back(around(nullptr));
    }
    reducers_[has_reducers ? channels[channel] : channel]->join(*membership_.node_memory, channel);
  }
  transport_->join(*membership_.node_memory);
  membership_.waiter->watch(membership_.node_memory->bell(), EventWaiter::Source::transport);
  return made;
}

} // namespace weir::host
