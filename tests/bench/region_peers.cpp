// SPDX-License-Identifier: BSD-3-Clause
#include "region_peers.hpp"

#include "support/frame_builder.hpp"
#include "wire/psn.hpp"
#include "wire/syndrome.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>

namespace weir::bench {
namespace {

using endpoint::AckRequest;
using wire::Opcode;

constexpr std::size_t kBthAt =
    sizeof(wire::EthernetHeader) + sizeof(wire::Ipv4Header) + sizeof(wire::UdpHeader);
constexpr std::size_t kBehindBth = kBthAt + sizeof(wire::Bth);
constexpr std::uint32_t kFirstQueuePair = 0x400;
constexpr std::uint32_t kFirstPsn = 0xfffff0;
constexpr std::uint8_t kReads = 16; // as many as there may be

region::RegionSpec spec_of(const RegionShape& shape) {
  region::RegionSpec spec{.id = shape.id,
                          .bytes = std::uint64_t{RegionPeers::kPacketsOfRequest} * shape.mtu,
                          .mtu = shape.mtu,
                          .window = shape.window,
                          .views = {{Operation::sum, DataType::f32}},
                          .members = {}};
  for (std::uint16_t member = 0; member < shape.members; ++member) {
    spec.members.push_back(
        {.ip = test::ip("10.200." + std::to_string(shape.id) + "." + std::to_string(member + 1)),
         .port = static_cast<std::uint16_t>(shape.first_port + member),
         .queue_pair = kFirstQueuePair + member,
         .first_psn = kFirstPsn,
         .base = std::uint64_t{0x1000000} * (member + 1u),
         .key = member + 1u,
         .reads = kReads});
  }
  return spec;
}

region::RegionBirth birth_of(const region::RegionSpec& spec) {
  std::mt19937_64 random(spec.id);
  return region::draw_birth(spec, random, [](std::uint32_t) { return false; });
}

endpoint::PacketWriter writer_of(const region::RegionSpec& spec, const region::RegionBirth& birth,
                                 std::uint16_t number) {
  const auto id = static_cast<std::uint8_t>(spec.id);
  endpoint::QueuePairConfig config;
  config.local_mac = {{0x02, 0x30, 0, 0, id, static_cast<std::uint8_t>(number + 1)}};
  config.remote_mac = regions_address().mac;
  config.local_ip = spec.members[number].ip;
  config.remote_ip = regions_address().ip;
  config.remote_qp = birth.members[number].queue_pair;
  config.path_mtu = spec.mtu;
  return endpoint::PacketWriter(config);
}

std::vector<std::uint8_t> gradients(std::size_t bytes) {
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> values(-0.1F, 0.1F);
  std::vector<std::uint8_t> memory(bytes);
  for (std::size_t at = 0; at < bytes; at += sizeof(float)) {
    const float value = values(random);
    std::memcpy(memory.data() + at, &value, sizeof value);
  }
  return memory;
}

Opcode opcode_at(std::uint32_t packet) {
  if (packet == 0) {
    return Opcode::write_first;
  }
  return packet + 1 == RegionPeers::kPacketsOfRequest ? Opcode::write_last : Opcode::write_middle;
}

} // namespace

RegionPeers::RegionPeers(const RegionShape& shape)
    : shape_(shape), spec_(spec_of(shape)), birth_(birth_of(spec_)),
      memory_(gradients(spec_.bytes)) {
  for (std::uint16_t number = 0; number < shape.members; ++number) {
    members_.push_back({.writer = writer_of(spec_, birth_, number)});
  }
}

std::uint16_t RegionPeers::port_of(std::uint16_t number) const {
  return static_cast<std::uint16_t>(shape_.first_port + number);
}

void RegionPeers::read(std::uint16_t member, std::uint64_t packets) {
  members_[member].wish = Wish::reads;
  members_[member].wanted += packets;
}

bool RegionPeers::is_done() const {
  return std::ranges::all_of(members_, [](const Member& member) {
    return member.has_said_hello && member.done == member.wanted;
  });
}

/// Of a packet that is counted behind the hello.
std::uint32_t RegionPeers::psn_of(const Member& member, std::uint64_t packet) const {
  return wire::psn_add(member.next_psn, static_cast<std::int64_t>(packet - member.done));
}

void RegionPeers::say_hello() {
  for (Member& member : members_) {
    member.has_said_hello = false;
    member.next_psn = kFirstPsn;
  }
}

void RegionPeers::speak(FarEnds& ends) {
  for (std::uint16_t number = 0; number < members_.size(); ++number) {
    Member& member = members_[number];
    if (!member.has_said_hello) {
      say_hello(number, ends);
    }
    while (member.sent < member.wanted && has_room(member)) {
      member.wish == Wish::reads ? read_next(number, ends) : write_next(number, ends);
    }
  }
}

/// For a READ more, or a packet of a WRITE.
bool RegionPeers::has_room(const Member& member) const {
  const std::uint64_t under_way = member.sent - member.done;
  return member.wish == Wish::reads ? under_way <= std::uint64_t{kReads - 1} * kPacketsOfRequest
                                    : under_way < spec_.window;
}

void RegionPeers::say_hello(std::uint16_t number, FarEnds& ends) {
  Member& member = members_[number];
  const region::Token& token = birth_.members[number].token;
  ends.send(port_of(number), [&](std::span<std::uint8_t> room) {
    return member.writer.write_request(room,
                                       {.opcode = Opcode::write_only,
                                        .ack_request = AckRequest::yes,
                                        .psn = kFirstPsn,
                                        .remote_address = birth_.base,
                                        .remote_key = birth_.multicast_key,
                                        .message_bytes = region::kTokenBytes},
                                       {token, {}});
  });
  member.has_said_hello = true;
  member.next_psn = wire::psn_add(kFirstPsn, 1);
}

void RegionPeers::write_next(std::uint16_t number, FarEnds& ends) {
  Member& member = members_[number];
  const auto packet = static_cast<std::uint32_t>(member.sent % kPacketsOfRequest);
  const bool is_last = packet + 1 == kPacketsOfRequest;
  ends.send(port_of(number), [&](std::span<std::uint8_t> room) {
    return member.writer.write_request(
        room,
        {.opcode = opcode_at(packet),
         .ack_request = is_last ? AckRequest::yes : AckRequest::no,
         .psn = psn_of(member, member.sent),
         .remote_address = birth_.base,
         .remote_key = birth_.multicast_key,
         .message_bytes = static_cast<std::uint32_t>(spec_.bytes)},
        {std::span(memory_).subspan(std::size_t{packet} * spec_.mtu, spec_.mtu), {}});
  });
  ++member.sent;
}

void RegionPeers::read_next(std::uint16_t number, FarEnds& ends) {
  Member& member = members_[number];
  ends.send(port_of(number), [&](std::span<std::uint8_t> room) {
    return member.writer.write_request(room,
                                       {.opcode = Opcode::read_request,
                                        .ack_request = AckRequest::yes,
                                        .psn = psn_of(member, member.sent),
                                        .remote_address = birth_.base,
                                        .remote_key = birth_.view_keys.front(),
                                        .message_bytes = static_cast<std::uint32_t>(spec_.bytes)},
                                       {});
  });
  member.sent += kPacketsOfRequest;
}

bool RegionPeers::hear(std::span<const std::uint8_t> frame, std::uint16_t port, FarEnds& ends) {
  const auto& ethernet = wire::view_as<wire::EthernetHeader>(frame.data());
  const auto number = static_cast<std::uint16_t>(port - shape_.first_port);
  if (ethernet.source != regions_address().mac || number >= members_.size() ||
      ethernet.destination.bytes[4] != spec_.id) {
    return false;
  }
  Member& member = members_[number];
  const auto& bth = wire::view_as<wire::Bth>(frame.data() + kBthAt);
  switch (static_cast<Opcode>(bth.opcode)) {
  case Opcode::write_only:
    if (bth.ack_request != 0) {
      acknowledge(number, bth.psn.get(), ends);
    }
    return true;
  case Opcode::read_request:
    respond(number, bth.psn.get(), wire::view_as<wire::Reth>(frame.data() + kBehindBth), ends);
    return true;
  case Opcode::acknowledge:
    hear_answer(member, bth, wire::view_as<wire::Aeth>(frame.data() + kBehindBth));
    return true;
  default: // a response to a READ
    if (bth.psn.get() != member.next_psn) {
      throw std::runtime_error("a response that is not the next one");
    }
    ++member.done;
    member.next_psn = wire::psn_add(member.next_psn, 1);
    return true;
  }
}

/// An ACK says what has come, a NAK and an RNR NAK what comes next.
void RegionPeers::hear_answer(Member& member, const wire::Bth& bth, const wire::Aeth& aeth) {
  if (member.wish == Wish::reads) {
    return;
  }
  const bool is_ack = wire::kind_of(aeth.syndrome) == wire::SyndromeKind::acknowledge;
  const std::uint32_t next = wire::psn_add(bth.psn.get(), is_ack ? 1 : 0);
  if (const std::int32_t come = wire::psn_distance(member.next_psn, next); come > 0) {
    member.done += static_cast<std::uint32_t>(come);
    member.next_psn = next;
  }
  if (!is_ack) {
    member.sent = member.done;
  }
}

void RegionPeers::acknowledge(std::uint16_t number, std::uint32_t psn, FarEnds& ends) {
  ends.send(port_of(number), [&](std::span<std::uint8_t> room) {
    return members_[number].writer.write_acknowledge(room,
                                                     {.syndrome = wire::kAckUnlimited, .psn = psn});
  });
}

void RegionPeers::respond(std::uint16_t number, std::uint32_t psn, const wire::Reth& reth,
                          FarEnds& ends) {
  const std::uint64_t offset = reth.virtual_address.get() - spec_.members[number].base;
  ends.send(port_of(number), [&](std::span<std::uint8_t> room) {
    return members_[number].writer.write_read_response(
        room, {.psn = psn}, {std::span(memory_).subspan(offset, reth.dma_length.get()), {}});
  });
}

} // namespace weir::bench
