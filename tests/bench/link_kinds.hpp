// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::bench {

/// Which program is at the other end of a link.
enum class FarEnd : std::uint8_t {
  interface, // a host with a network interface; its frames pass a packet socket
  device,    // another DPDK program, without the kernel
};

/// What becomes of a frame that the kernel does not take at once.
enum class Delivery : std::uint8_t {
  every_frame, // as long as no more are under way than the link holds
  best_effort, // the driver drops it and reports it as sent
};

/// One way to connect a host and a port of the switch. `{0}` in a text is the port's number, `{1}`
/// a folder of the measurement's own.
struct LinkKind {
  std::string_view name;
  std::string_view device; // devargs at the switch
  FarEnd far_end = FarEnd::interface;
  std::string_view host = "host{0}"; // the host's interface, or its devargs
  // Arguments of ip(8) that make the interfaces port{0} and host{0}. Empty: the driver makes them.
  std::string_view cable = "link add port{0} type veth peer name host{0}";
  Delivery delivery = Delivery::every_frame;
};

/// The first is the baseline.
inline constexpr std::array kLinkKinds{
    LinkKind{.name = "af_packet", .device = "net_af_packet{0},iface=port{0}"},
    LinkKind{.name = "af_packet, qdisc_bypass=0",
             .device = "net_af_packet{0},iface=port{0},qdisc_bypass=0"},
    LinkKind{.name = "af_packet, framecnt=4096",
             .device = "net_af_packet{0},iface=port{0},framecnt=4096"},
    LinkKind{.name = "af_packet, blocksz=65536",
             .device = "net_af_packet{0},iface=port{0},blocksz=65536"},
    LinkKind{.name = "af_xdp", .device = "net_af_xdp{0},iface=port{0}"},
    LinkKind{.name = "af_xdp, busy_budget=0",
             .device = "net_af_xdp{0},iface=port{0},busy_budget=0"},
    LinkKind{.name = "af_xdp, force_copy=1", .device = "net_af_xdp{0},iface=port{0},force_copy=1"},
    LinkKind{.name = "pcap",
             .device = "net_pcap{0},rx_iface_in=port{0},tx_iface=port{0}",
             .delivery = Delivery::best_effort},
    LinkKind{.name = "tap", .device = "net_tap{0},iface=port{0}", .host = "port{0}", .cable = {}},
    LinkKind{.name = "memif",
             .device = "net_memif{0},role=server,id={0},socket={1}/memif{0},socket-abstract=no",
             .far_end = FarEnd::device,
             .host =
                 "net_memif_host{0},role=client,id={0},socket={1}/./memif{0},socket-abstract=no",
             .cable = {}},
    LinkKind{.name = "vhost",
             .device = "net_vhost{0},iface={1}/vhost{0}",
             .far_end = FarEnd::device,
             .host = "net_virtio_user{0},path={1}/vhost{0},queue_size=1024",
             .cable = {}},
};

} // namespace weir::bench
