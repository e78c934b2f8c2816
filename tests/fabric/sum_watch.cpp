// SPDX-License-Identifier: BSD-3-Clause
#include "sum_watch.hpp"

#include "frame/frame.hpp"
#include "operators.hpp"
#include "violation.hpp"
#include "wire/crc32.hpp"
#include "wire/headers.hpp"
#include "wire/parse.hpp"
#include "wire/psn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace weir::fabric {
namespace {

std::uint64_t name_of(std::uint16_t host, std::uint32_t queue_pair) {
  return std::uint64_t{host} << 24 | queue_pair;
}

/// Whether the switch is this one or below it.
bool is_below(const RingTree& tree, std::uint16_t above, std::uint16_t node) {
  for (std::optional<std::uint16_t> at = node; at; at = tree.parts[*at].parent) {
    if (*at == above) {
      return true;
    }
  }
  return false;
}

} // namespace

void SumWatch::expect(JobRun& run) {
  const RingPlan& plan = run.plan;
  for (std::uint16_t rank = 0; rank < plan.spec.world(); ++rank) {
    const std::uint16_t successor = plan.spec.successor(rank);
    connections_[name_of(plan.hosts[successor], run.seats[successor].incoming_qp)] = {&run, rank,
                                                                                      false};
    connections_[name_of(plan.hosts[rank], run.seats[rank].outgoing_qp)] = {&run, rank, true};
  }
}

const SumWatch::Connection* SumWatch::find(const Packet& packet) const {
  const auto& ethernet = wire::view_as<wire::EthernetHeader>(packet.data);
  const std::uint8_t number = ethernet.destination.bytes[5];
  if (number == 0 || number > scenario_.hosts ||
      ethernet.destination != mac_of_host(static_cast<std::uint16_t>(number - 1))) {
    return nullptr;
  }
  const wire::Packet parsed = wire::parse(packet.bytes());
  const auto found =
      connections_.find(name_of(static_cast<std::uint16_t>(number - 1), parsed.destination_qp));
  return found == connections_.end() ? nullptr : &found->second;
}

std::optional<SumWatch::Owner> SumWatch::owner_of(const Packet& packet) const {
  const Connection* connection = find(packet);
  if (connection == nullptr) {
    return std::nullopt;
  }
  const JobRun& run = *connection->run;
  const std::uint16_t speaker =
      connection->is_answered ? run.plan.spec.successor(connection->rank) : connection->rank;
  return Owner{{Origin::Kind::member, run.ring, speaker, run.generation}, run.nonce};
}

std::uint32_t SumWatch::number_of(const Packet& packet) const {
  const Connection* connection = find(packet);
  if (connection == nullptr || connection->is_answered) {
    return 0;
  }
  const std::uint32_t first = connection->run->seats[connection->rank].outgoing_psn;
  return wire::psn_add(wire::parse(packet.bytes()).psn, (1u << 24) - first);
}

std::optional<SumWatch::Passage> SumWatch::passage_of(const Connection& connection,
                                                      const Departure& departure) const {
  const RingPlan& plan = connection.run->plan;
  const RingTree::Part& part = plan.tree.parts[departure.node];
  const auto sender =
      part.exists() ? part.sender_for(connection.rank, plan.spec.world()) : std::nullopt;
  if (!sender) {
    return std::nullopt;
  }
  return Passage{connection, part, departure, part.is_outgoing(*sender)};
}

void SumWatch::leaves(const Packet& packet, const Departure& departure) {
  const Connection* connection = find(packet);
  if (connection == nullptr || connection->is_answered ||
      connection->run->plan.role == RingRole::victim) {
    return;
  }
  const JobRun& run = *connection->run;
  if (run.plan.reuse != 0 && departure.nonce != run.nonce) {
    return; // the queue pair belonged to an earlier run
  }
  const auto passage = passage_of(*connection, departure);
  if (!passage) {
    throw Violation("I1", fmt::format("ring {} rank {}: switch {} has no part in this connection, "
                                      "and sends on it",
                                      run.plan.spec.id, connection->rank, departure.node));
  }
  check_port(*passage);
  const wire::Packet parsed = wire::parse(packet.bytes());
  const std::uint32_t number = number_of(packet);
  const auto share = run.expected.packet(number);
  if (!share) {
    throw Violation("I1", fmt::format("ring {} rank {}: PSN {:#x} is past the last message",
                                      run.plan.spec.id, connection->rank, parsed.psn));
  }
  if (share->starts_message) {
    check_header(*passage, packet, share->share == nullptr);
  }
  check_data(*passage, packet, *share);
  const bool climbs = share->share == nullptr && passage->goes_up;
  if (!climbs) {
    check_repeat(packet, departure);
  }
  coverage_.hit(climbs             ? Row::tree_climbed
                : passage->goes_up ? Row::tree_partial_sum
                                   : Row::tree_total);
}

void SumWatch::check_port(const Passage& passage) const {
  const RingPlan& plan = passage.connection.run->plan;
  const Departure& departure = passage.departure;
  const std::uint16_t receiver = plan.spec.successor(passage.connection.rank);
  const auto child = std::ranges::find_if(passage.part.children, [&](const RingTree::Child& each) {
    return each.ranks.first == receiver;
  });
  std::uint16_t due = 0;
  if (passage.goes_up) {
    due = scenario_.place_between(departure.node, *passage.part.parent);
  } else if (child->node) {
    due = scenario_.place_between(departure.node, *child->node);
  } else {
    due = plan.hosts[receiver];
  }
  if (scenario_.places[due].port != departure.port) {
    throw Violation("I2", fmt::format("ring {}: what goes to rank {} leaves switch {} by port {}, "
                                      "and the tree's is {}",
                                      plan.spec.id, receiver, departure.node, departure.port,
                                      scenario_.places[due].port));
  }
}

void SumWatch::check_header(const Passage& passage, const Packet& packet, bool is_hello) const {
  const RingPlan& plan = passage.connection.run->plan;
  frame::Frame frame = packet;
  frame.packet = wire::parse(packet.bytes());
  const wire::InaHeader* ina = wire::find_ina_header(frame);
  const std::uint8_t due = passage.goes_up ? kInaFlagPartial : kInaFlagResult;
  if (ina == nullptr || ina->flags != due) {
    throw Violation("I1", fmt::format("ring {} rank {}: switch {} sends flags {:#x}, due are {:#x}",
                                      plan.spec.id, passage.connection.rank, passage.departure.node,
                                      ina == nullptr ? 0 : ina->flags, due));
  }
  const bool has_own_session = !passage.goes_up && passage.departure.session != 0;
  if (has_own_session && ina->session.get() != passage.departure.session) {
    throw Violation("I2", fmt::format("ring {} rank {}: switch {} sends session {:#x}, its own is "
                                      "{:#x}",
                                      plan.spec.id, passage.connection.rank, passage.departure.node,
                                      ina->session.get(), passage.departure.session));
  }
  const bool names_range =
      !is_hello || !passage.goes_up || ina->root.get() == passage.part.range().first;
  const bool names_run =
      !is_hello || (passage.goes_up ? ina->session.get() == passage.connection.run->nonce
                                    : ina->message_id.get() == passage.connection.run->nonce);
  if (!names_range || !names_run) {
    throw Violation("I2",
                    fmt::format("ring {} rank {}: a hello of switch {} names {:#x}, {:#x}, {}: "
                                "another range or run",
                                plan.spec.id, passage.connection.rank, passage.departure.node,
                                ina->session.get(), ina->message_id.get(), ina->root.get()));
  }
}

/// A hello names those that the switch and all below it have; its result those that all have.
void SumWatch::check_table(const Passage& passage, std::span<const std::uint8_t> table) const {
  const RingPlan& plan = passage.connection.run->plan;
  wire::OperatorTable due = operator_table();
  const auto lacks = plan.lacks_one;
  if (lacks && (!passage.goes_up || is_below(plan.tree, passage.departure.node, *lacks))) {
    due.entries()[1] = {};
  }
  if (!std::ranges::equal(table, due.bytes())) {
    throw Violation("I1",
                    fmt::format("ring {} rank {}: switch {} sends another table of operators",
                                plan.spec.id, passage.connection.rank, passage.departure.node));
  }
}

/// A broadcast's packets that go up carry what nobody reads, unless the root is below.
void SumWatch::check_data(const Passage& passage, const Packet& packet,
                          const ExpectedResults::PacketShare& share) const {
  JobRun& run = *passage.connection.run;
  frame::Frame frame = packet;
  frame.packet = wire::parse(packet.bytes());
  const std::size_t header = share.starts_message ? kInaHeaderBytes : 0;
  const auto payload =
      packet.bytes().subspan(frame.packet.payload_offset, frame.packet.payload_bytes);
  if (share.share == nullptr && run.plan.has_operators) {
    return check_table(passage, payload.subspan(header));
  }
  if (payload.size() != header + share.bytes) {
    throw Violation("I1",
                    fmt::format("ring {} rank {}: switch {} sends a packet of {} bytes, due "
                                "are {}",
                                run.plan.spec.id, passage.connection.rank, passage.departure.node,
                                payload.size(), header + share.bytes));
  }
  if (share.bytes == 0 || run.plan.is_disputed(share.share->call)) {
    return;
  }
  const bool is_sum = run.expected.is_sum(share.share->call);
  if (passage.goes_up && !is_sum && !passage.part.range().has(share.share->root)) {
    return;
  }
  const std::vector<std::uint8_t>& all =
      passage.goes_up && is_sum ? run.expected.sum_of(passage.departure.node, share.share->call)
                                : run.expected.results_of(share.share->call);
  if (!std::equal(payload.begin() + static_cast<std::ptrdiff_t>(header), payload.end(),
                  all.begin() + static_cast<std::ptrdiff_t>(share.offset))) {
    throw Violation("I1", fmt::format("ring {} rank {}: what leaves switch {} with PSN {:#x} is "
                                      "not the {} of call {} ({})",
                                      run.plan.spec.id, passage.connection.rank,
                                      passage.departure.node, frame.packet.psn,
                                      passage.goes_up ? "partial sum" : "total", share.share->call,
                                      host::describe(run.plan.calls[share.share->call].call)));
  }
}

/// But for AckReq, and what the ICRC does not cover.
void SumWatch::check_repeat(const Packet& packet, const Departure& departure) {
  const wire::Packet parsed = wire::parse(packet.bytes());
  std::vector<std::uint8_t> bytes(packet.data + parsed.bth_offset,
                                  packet.data + parsed.icrc_offset);
  auto& bth = wire::view_as<wire::Bth>(bytes.data());
  bth.ack_request = 0;
  bth.reserved_variant = 0;
  const First now{wire::crc32(wire::crc32(0, {packet.data, 2 * sizeof(wire::MacAddress)}), bytes),
                  departure.life, departure.nonce};
  const std::uint64_t host = packet.data[5];
  const std::uint64_t name = (std::uint64_t{departure.node} << 56 | host << 48 |
                              std::uint64_t{parsed.destination_qp} << 24 | parsed.psn);
  const auto [found, is_new] = first_.try_emplace(name, now);
  First& first = found->second;
  if (is_new || first.life != now.life || first.nonce != now.nonce) {
    if (packet.origin.kind == Origin::Kind::own) {
      throw Violation("I2", fmt::format("switch {} makes PSN {:#x} of QP {:#x}, which has not left",
                                        departure.node, parsed.psn, parsed.destination_qp));
    }
    first = now;
    return;
  }
  coverage_.hit(Row::tree_again);
  if (first.crc != now.crc) {
    throw Violation("I8", fmt::format("switch {} sends PSN {:#x} of QP {:#x} again, and it differs",
                                      departure.node, parsed.psn, parsed.destination_qp));
  }
}

} // namespace weir::fabric
