// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/event.hpp"
#include "netsim/network.hpp"
#include "netsim/packet.hpp"
#include "netsim/source.hpp"
#include "netsim/virtual_channels.hpp"

#include <cassert>
#include <cstdint>
#include <vector>

namespace weir::netsim {

/// Links whose far ends hold packets in FIFOs, one for each virtual channel. Only the head of a
/// FIFO can go on, so a packet for a busy link delays those behind it. A packet is sent when one of
/// its link's FIFOs has room for all of it (virtual cut-through). The sender learns of freed room
/// after the link's latency, counted from the time at which the packet's head leaves the FIFO:
/// incoming flits can use the places of outgoing ones. At the end of a packet's way there is always
/// room.
///
/// Travellers are those of FifoFabric.
/// A Traveller is FifoFabric's.
template <class Traveller>
class CreditFabric {
 public:
  CreditFabric(const Network& network, Events& events, std::vector<Source>& sources,
               Traveller& traveller, const VirtualChannels& channels)
      : network_(network), events_(events), sources_(sources), traveller_(traveller),
        channels_(channels), use_(network.links().size()),
        fifos_(network.links().size() * channels.count + sources.size()),
        room_(network.links().size() * channels.count, channels.bytes),
        is_held_(network.links().size() * channels.count) {
    for (const Link& link : network.links()) {
      ports_.push_back({.pace = Pace(link.bits_per_second)});
    }
  }

  /// Something was added to that source.
  void wake(std::uint32_t source, Time now) {
    const std::uint32_t index = first_source() + source;
    Fifo& fifo = fifos_[index];
    if (fifo.state == Fifo::State::empty) {
      append(fifo, pool_.make(sources_[source].take(now)));
      fifo.state = Fifo::State::waiting;
      request(index, now);
    }
  }

  void advance(const Event& event, Time now) {
    switch (event.kind) {
    case EventKind::packet_at_link:
      enter(event.detail, event.subject, now);
      break;
    case EventKind::link_free:
      served(event.subject, event.detail, now);
      break;
    default: // credit
      room_[event.subject] += event.detail;
      start(event.subject / channels_.count, now);
    }
  }

  const std::vector<LinkUse>& use() const { return use_; }

 private:
  static constexpr std::uint32_t kFree = UINT32_MAX;

  struct Fifo {
    enum class State : std::uint8_t { empty, waiting, served };

    PacketId first = kFree; // head of a linked list of packets
    PacketId last = kFree;
    State state = State::empty;
    std::uint32_t onward = kFree; // the virtual channel that the present message holds
  };

  /// A link's sending end.
  struct Port {
    Pace pace;
    std::vector<std::uint32_t> waiting; // FIFOs whose heads wait for this link
    Time free_from = 0;
    std::uint32_t last = 0; // virtual channel used last; the next search begins after it
  };

  std::uint32_t first_source() const {
    return static_cast<std::uint32_t>(network_.links().size()) * channels_.count;
  }

  bool is_source(std::uint32_t fifo) const { return fifo >= first_source(); }

  void append(Fifo& fifo, PacketId packet) {
    pool_[packet].next = kFree;
    if (fifo.first == kFree) {
      fifo.first = packet;
    } else {
      pool_[fifo.last].next = packet;
    }
    fifo.last = packet;
  }

  void enter(std::uint32_t index, PacketId packet, Time now) {
    pool_[packet].since = now;
    Fifo& fifo = fifos_[index];
    append(fifo, packet);
    if (fifo.state == Fifo::State::empty) {
      fifo.state = Fifo::State::waiting;
      request(index, now);
    }
  }

  void request(std::uint32_t index, Time now) {
    const LinkIndex link = pool_[fifos_[index].first].hop->link;
    ports_[link].waiting.push_back(index);
    start(link, now);
  }

  /// The link has sent the packet that it took from that FIFO.
  void served(LinkIndex link, std::uint32_t index, Time now) {
    Fifo& fifo = fifos_[index];
    if (is_source(index) && !sources_[index - first_source()].is_empty()) {
      append(fifo, pool_.make(sources_[index - first_source()].take(now)));
    }
    if (fifo.first == kFree) {
      fifo.state = Fifo::State::empty;
    } else {
      fifo.state = Fifo::State::waiting;
      request(index, now);
    }
    start(link, now);
  }

  /// If the link is idle, it takes one of the heads that wait for it.
  void start(LinkIndex link, Time now) {
    Port& port = ports_[link];
    if (now < port.free_from) {
      return;
    }
    std::size_t best = port.waiting.size();
    for (std::size_t i = 0; i < port.waiting.size(); ++i) {
      if (channel_for(link, port.waiting[i]) != kFree &&
          (best == port.waiting.size() || is_before(port.waiting[i], port.waiting[best]))) {
        best = i;
      }
    }
    if (best != port.waiting.size()) {
      const std::uint32_t fifo = port.waiting[best];
      port.waiting[best] = port.waiting.back();
      port.waiting.pop_back();
      cross(link, fifo, channel_for(link, fifo), now);
    }
  }

  bool is_before(std::uint32_t a, std::uint32_t b) {
    const Packet& first = pool_[fifos_[a].first];
    const Packet& second = pool_[fifos_[b].first];
    if (channels_.arbitration == VirtualChannels::Arbitration::by_step &&
        first.step != second.step) {
      return first.step < second.step;
    }
    return first.since != second.since ? first.since < second.since : a < b;
  }

  /// The virtual channel for that FIFO's head, or kFree. It is 0 on a last hop.
  std::uint32_t channel_for(LinkIndex link, std::uint32_t index) {
    const Fifo& fifo = fifos_[index];
    const Packet& packet = pool_[fifo.first];
    if (packet.is_on_last_hop()) {
      return 0;
    }
    const std::uint32_t first = link * channels_.count;
    if (fifo.onward != kFree) {
      return room_[first + fifo.onward] >= packet.bytes ? fifo.onward : kFree;
    }
    const Range range = range_of(packet.hop->dateline);
    for (std::uint32_t i = 1; i <= range.count; ++i) {
      const std::uint32_t channel = range.first + (ports_[link].last + i) % range.count;
      if (is_held_[first + channel] == 0 && room_[first + channel] >= packet.bytes) {
        return channel;
      }
    }
    return kFree;
  }

  struct Range {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };

  Range range_of(Hop::Dateline dateline) const {
    const std::uint32_t half = channels_.count / 2;
    if (dateline == Hop::Dateline::none || half == 0) {
      return {0, channels_.count};
    }
    return dateline == Hop::Dateline::crossed ? Range{channels_.count - half, half}
                                              : Range{0, channels_.count - half};
  }

  void cross(LinkIndex link, std::uint32_t index, std::uint32_t channel, Time now) {
    Fifo& fifo = fifos_[index];
    const PacketId id = fifo.first;
    fifo.first = pool_[id].next;
    fifo.state = Fifo::State::served;
    const Packet packet = pool_[id];
    const Link& traits = network_.link(link);
    const Time duration = ports_[link].pace.time_of(packet.bytes);
    ports_[link].free_from = now + duration;
    events_.push(now + duration, {EventKind::link_free, link, index});
    use_[link].packets += 1;
    use_[link].bytes += packet.bytes;
    use_[link].busy += duration;
    give_back(index, packet.bytes, now);
    if (packet.is_on_last_hop()) {
      traveller_.packet_leaves(packet, now + duration + traits.latency);
      pool_.release(id);
    } else {
      go_on(link, fifo, channel, id, now + traits.latency, duration);
    }
    if (is_source(index)) {
      traveller_.source_sends(index - first_source());
    }
  }

  /// Moves the packet to the far end's FIFO.
  void go_on(LinkIndex link, Fifo& fifo, std::uint32_t channel, PacketId id, Time head_there,
             Time duration) {
    Packet& packet = pool_[id];
    const std::uint32_t far = link * channels_.count + channel;
    const bool holds = packet.follower == Packet::Follower::same_channel;
    fifo.onward = holds ? channel : kFree;
    is_held_[far] = holds ? 1 : 0;
    ports_[link].last = channel;
    assert(room_[far] >= packet.bytes);
    room_[far] -= packet.bytes;
    ++packet.hop;
    const Time next = ports_[packet.hop->link].pace.time_of(packet.bytes);
    // A faster link must wait, or it would run out of bytes.
    const Time wait = next < duration ? duration - next : 0;
    events_.push(head_there + wait, {EventKind::packet_at_link, id, far});
  }

  void give_back(std::uint32_t index, std::uint32_t bytes, Time now) {
    if (!is_source(index)) {
      const Time latency = network_.link(index / channels_.count).latency;
      events_.push(now + latency, {EventKind::credit, index, bytes});
    }
  }

  const Network& network_;
  Events& events_;
  std::vector<Source>& sources_;
  Traveller& traveller_;
  const VirtualChannels channels_;
  PacketPool pool_;
  std::vector<LinkUse> use_;
  std::vector<Port> ports_;         // by link
  std::vector<Fifo> fifos_;         // link · count + channel, then sources
  std::vector<std::uint32_t> room_; // free bytes, by link and channel, as the sender knows
  std::vector<char> is_held_;       // by a message whose last packet has not come
};

} // namespace weir::netsim
