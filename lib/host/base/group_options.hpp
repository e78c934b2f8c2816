// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace weir::program {
class Operator;
}

namespace weir::host {

enum class TransportKind : std::uint8_t {
  software, // this library's own RC queue pair over raw Ethernet frames
  verbs,    // a RoCE NIC through libibverbs
};

/// What to do when no ring is left: nobody aggregates, or no switch answers the hellos.
enum class Fallback : std::uint8_t {
  none, // fail
  ring, // reduce on the hosts, over the same connections, to the same bits
};

/// What to do when a ring's switch has not answered all ranks' hellos, and another ring's has.
enum class MissingRings : std::uint8_t {
  leave_out, // go on with the rings that have answered
  refuse,    // all rings or none: as if no switch had answered
};

/// Who drives a group's calls while nobody waits for one.
enum class ProgressBy : std::uint8_t {
  thread, // one of the group's own
  caller, // nobody: the group has no thread, and does something only when its program calls
};

class Listener;

/// Who says which ids the rings have.
enum class RingIds : std::uint8_t {
  given,   // the options
  open,    // the switch that makes them; those of the options where none does
  offered, // the same, and the switch makes no more than it has workers; ring 1 where none does
};

inline constexpr std::size_t kMostOpenRings = 256;
inline constexpr std::size_t kMostOfferedRings = 8; // a queue pair each, before they are offered

/// Ids 1 .. count, for rings that a switch gives other ids if it makes them.
inline std::vector<std::uint32_t> open_rings(std::size_t count) {
  std::vector<std::uint32_t> rings(count);
  std::iota(rings.begin(), rings.end(), 1U);
  return rings;
}

/// How to call the switch's control service. The others are paths of PEM files; empty: as
/// $WEIR_SWITCH_CERTIFICATE, _KEY, _AUTHORITY and _NAME say.
struct SwitchAccess {
  // unix:/PATH or HOST:PORT; empty: no switch makes rings for us. None: as $WEIR_SWITCH says.
  std::optional<std::string> address;
  // The same of a fabric's managers, separated by commas, in place of the switch; empty: as
  // $WEIR_MANAGER says, unless there is an address above.
  std::string manager;
  std::string certificate;
  std::string key;
  std::string authority; // who signed the switch's certificate
  std::string name;      // the switch's in its certificate; empty: HOST
  // For managers, in place of a certificate: a file with an allocation's token; empty: as
  // $WEIR_TOKEN_FILE says.
  std::string token_file;
};

/// Fills `out` with every rank's `bytes` bytes, in rank order. Returns 0, or anything else when it
/// cannot. Every rank calls it.
using AllGather = std::function<int(const void* in, std::size_t bytes, void* out)>;

/// All ranks give the same values, except for rank, switch_access, progress, device, addresses,
/// times, loss and seed. The rendezvous compares them.
struct GroupOptions {
  std::vector<std::uint32_t> rings{1}; // ids as in the switch; a tensor is split among them
  RingIds ring_ids = RingIds::given;
  // Rank 0's counts: it has that switch make the rings, for as long as the group is there.
  SwitchAccess switch_access;
  std::uint16_t rank = 0;
  std::uint16_t world = 2;
  // HOST:PORT where rank 0 listens. With an all_gather it may be empty, and its port 0.
  std::string rendezvous;
  std::string job;      // who comes with another name is turned away
  std::string secret;   // every control frame has a code made with it; empty: none has
  AllGather all_gather; // empty: none; else called once, to tell where rank 0 listens
  // Of rank 0: where it listens already, in place of `rendezvous`. The group takes its socket.
  std::shared_ptr<Listener> listener;
  std::string handle; // of the others: the listener's, as bytes; empty: none
  std::chrono::milliseconds form_timeout{10'000}; // to meet the other ranks
  // Without any progress later, once all ranks have made a call. Of a pause in which this rank
  // itself was stopped or got no CPU, a tenth of a second counts, here as above.
  std::chrono::milliseconds timeout{10'000};
  // Until the last rank makes a call that others have made. 0: any time. Over an HCA, the ACK
  // timeout and its tries must cover it.
  std::chrono::milliseconds lateness{0};
  // The destructor stays for ranks that need an acknowledgement no longer. 0: as `timeout`.
  std::chrono::milliseconds farewell{0};
  // A rank whose machine or network is gone is noticed within this time, also between calls. Not
  // less than 3 s. 0: as `timeout`, which such a rank could not keep either.
  std::chrono::milliseconds keep_alive{0};
  std::uint32_t window = 8;            // N, messages; as configured in the switch
  std::uint32_t message_bytes = 65536; // longest message, its 40-byte INA header included
  std::uint32_t path_mtu = 1024;       // 256, 512, 1024, 2048 or 4096
  // 0: rank 0 takes wall-clock seconds, so a restarted job has a larger one. A nonce tells runs of
  // the same epoch apart. A caller that sets epochs must set a larger one while an older process
  // may be alive.
  std::uint32_t epoch = 0;
  // Those of the users' own, which WEIR_OPERATOR(0), … name: the same on all ranks.
  std::vector<std::shared_ptr<const program::Operator>> operators;
  Fallback fallback = Fallback::none;
  MissingRings missing_rings = MissingRings::leave_out;
  ProgressBy progress = ProgressBy::thread;
  TransportKind transport = TransportKind::software;
  std::string device; // software: a network interface; verbs: an RDMA device such as mlx5_0, rxe0
  std::string ip;     // software: this rank's address, as in the switch's ring; empty: the device's
  std::string mac;    // software: empty: the interface's own
  // Names the NIC for ranks of this host that share it. Empty: this rank has one for itself.
  std::string nic;
  std::uint8_t gid_index = 1; // verbs: the RoCEv2 entry of the port's GID table
  // A packet waits in the switch until the slowest rank has sent its own; see docs/protocol.md §7.
  // Rounded up to 4.096 µs x 2^e. 0: 67 ms in software, whose default retries never end; over
  // verbs, long enough that eight tries cover `timeout`.
  std::chrono::milliseconds ack_timeout{0};
  std::uint8_t retry_count = 7; // software: 7 is no limit; then `timeout` ends the job
  double loss = 0;        // software: the share of our frames that is dropped on purpose, 0 … 0.9
  std::uint64_t seed = 1; // of these drops
};

} // namespace weir::host
