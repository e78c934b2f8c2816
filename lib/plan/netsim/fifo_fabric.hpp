// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/event.hpp"
#include "netsim/network.hpp"
#include "netsim/packet.hpp"
#include "netsim/source.hpp"
#include "netsim/transmitter.hpp"

#include <cstdint>
#include <vector>

namespace weir::netsim {

/// Links that send packets in the order of arrival, from a FIFO without limit. A packet goes on as
/// soon as its head has come (cut-through).
///
/// The fabric calls a Traveller:
///   packet_leaves(packet, time)  the packet has begun to cross its last link and arrives at `time`
///   source_sends(source)         a packet has left that source
template <class Traveller>
class FifoFabric {
 public:
  FifoFabric(const Network& network, Events& events, std::vector<Source>& sources,
             Traveller& traveller)
      : network_(network), events_(events), sources_(sources), traveller_(traveller),
        use_(network.links().size()), is_sending_(sources.size()) {
    for (const Link& link : network.links()) {
      ports_.push_back({Pace(link.bits_per_second), {}});
    }
  }

  /// Something was added to that source.
  void wake(std::uint32_t source, Time now) {
    if (is_sending_[source] == 0) {
      is_sending_[source] = 1;
      send_next(source, now);
    }
  }

  void advance(const Event& event, Time now) {
    if (event.kind == EventKind::packet_at_link) {
      cross(event.subject, now);
    } else {
      send_next(event.subject, now);
    }
  }

  const std::vector<LinkUse>& use() const { return use_; }

 private:
  struct Port {
    Pace pace;
    Transmitter transmitter;
  };

  void send_next(std::uint32_t source, Time now) {
    Source& packets = sources_[source];
    if (packets.is_empty()) {
      is_sending_[source] = 0;
      return;
    }
    const PacketId packet = pool_.make(packets.take(now));
    const Time sent = cross(packet, now);
    events_.push(sent, {EventKind::source_ready, source});
    traveller_.source_sends(source);
  }

  /// Returns when the link has sent it.
  Time cross(PacketId id, Time now) {
    Packet& packet = pool_[id];
    const LinkIndex index = packet.hop->link;
    const Link& link = network_.link(index);
    Port& port = ports_[index];
    const Time duration = port.pace.time_of(packet.bytes);
    const Time begin = port.transmitter.take(now, duration);
    use_[index].packets += 1;
    use_[index].bytes += packet.bytes;
    use_[index].busy += duration;
    if (packet.is_on_last_hop()) {
      traveller_.packet_leaves(packet, begin + duration + link.latency);
      pool_.release(id);
    } else {
      ++packet.hop;
      const Time next = ports_[packet.hop->link].pace.time_of(packet.bytes);
      // A faster link must wait, or it would run out of bytes.
      const Time wait = next < duration ? duration - next : 0;
      events_.push(begin + link.latency + wait, {EventKind::packet_at_link, id});
    }
    return begin + duration;
  }

  const Network& network_;
  Events& events_;
  std::vector<Source>& sources_;
  Traveller& traveller_;
  PacketPool pool_;
  std::vector<Port> ports_; // by link
  std::vector<LinkUse> use_;
  std::vector<char> is_sending_;
};

} // namespace weir::netsim
