// SPDX-License-Identifier: BSD-3-Clause
#include "worker/group_options.hpp"

#include "text/list.hpp"
#include "weir/limits.hpp"
#include "worker/device_table.hpp"

#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace weir::app {
namespace {

std::vector<std::uint32_t> ring_ids(std::string_view option, std::string_view text) {
  std::vector<std::uint32_t> ids;
  for (const std::string_view id : text::words_of(text)) {
    ids.push_back(number<std::uint32_t>(option, id, 0, UINT32_MAX));
  }
  return ids;
}

std::chrono::milliseconds seconds(std::string_view option, std::string_view text) {
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(1000 * number<double>(option, text, 0.001, 86400)));
}

/// A file, because every user of the machine can read a command line. A newline at the end is the
/// editor's.
std::string secret_in(std::string_view path) {
  std::ifstream file{std::string(path), std::ios::binary};
  std::string secret{std::istreambuf_iterator<char>(file), {}};
  if (!file) {
    refuse("secret-file", path, "a file that can be read");
  }
  if (secret.ends_with('\n')) {
    secret.pop_back();
  }
  if (secret.empty()) {
    refuse("secret-file", path, "a file with a secret; this one is empty");
  }
  return secret;
}

void set_device(host::GroupOptions& group, std::string& devargs, std::string_view text) {
  constexpr std::string_view kInterface = "iface=";
  if (text.starts_with(kInterface)) {
    group.device = text.substr(kInterface.size());
  } else if (text.starts_with("net_") || text.find(':') != std::string_view::npos) {
    devargs = text;
  } else {
    group.device = text;
  }
}

/// Who this rank is, and how it meets the others.
std::vector<Option> rank_rows(host::GroupOptions& group) {
  return {
      {"rank", "R", "this worker's rank, from 0",
       [&](auto v) { group.rank = number<std::uint16_t>("rank", v, 0, 255); }},
      {"world", "H", "how many ranks (1 .. 256)",
       [&](auto v) { group.world = number<std::uint16_t>("world", v, 1, 256); }},
      {"rendezvous", "HOST:PORT", "TCP address where rank 0 listens and the others meet it",
       [&](auto v) { group.rendezvous = v; }},
      {"job", "NAME", "the job's name; callers of another job are turned away (default: none)",
       [&](auto v) { group.job = v; }},
      {"secret-file", "FILE",
       "a secret of 16 .. 1024 bytes that all ranks have; who lacks it is turned away",
       [&](auto v) { group.secret = secret_in(v); }},
  };
}

void leave_rings_open(host::GroupOptions& group, std::string_view count) {
  const bool is_offered = count == "offered";
  group.ring_ids = is_offered ? host::RingIds::offered : host::RingIds::open;
  group.rings = host::open_rings(
      is_offered ? host::kMostOfferedRings
                 : number<std::size_t>("ring-count", count, 1, host::kMostOpenRings));
}

/// Which rings, and who makes them.
std::vector<Option> ring_rows(host::GroupOptions& group) {
  return {
      {"ring", "ID[,ID]", "the switch's ring or rings; several share the tensor (default 1)",
       [&](auto v) {
         group.rings = ring_ids("ring", v);
         group.ring_ids = host::RingIds::given;
       }},
      {"ring-count", "N",
       "instead of --ring: so many rings; a switch that makes them chooses the ids. 'offered': as "
       "many as it has workers (default 1)",
       [&](auto v) { leave_rings_open(group, v); }},
      {"switch", "ADDRESS",
       "unix:/PATH or HOST:PORT of the switch that makes the rings, for this job only; rank 0's "
       "counts (default: $WEIR_SWITCH, else the rings are configured)",
       [&](auto v) { group.switch_access.address = v; }},
      {"switch-certificate", "FILE", "this client's certificate, PEM; for HOST:PORT",
       [&](auto v) { group.switch_access.certificate = v; }},
      {"switch-key", "FILE", "its key", [&](auto v) { group.switch_access.key = v; }},
      {"switch-authority", "FILE", "who signed the switch's certificate",
       [&](auto v) { group.switch_access.authority = v; }},
      {"switch-name", "NAME", "the switch's name in its certificate, if it is not HOST",
       [&](auto v) { group.switch_access.name = v; }},
  };
}

/// A word of an option, and what it stands for.
template <typename Value>
struct Word {
  const char* word;
  Value value;
};

template <typename Value>
Word(const char*, Value) -> Word<Value>;

/// Refuses all other words.
template <typename Value>
Value one_of(std::string_view option, std::string_view found, Word<Value> first,
             Word<Value> second) {
  if (found != first.word && found != second.word) {
    refuse(option, found, fmt::format("{}, {}", first.word, second.word));
  }
  return found == first.word ? first.value : second.value;
}

/// What if switches do not answer.
std::vector<Option> lack_rows(host::GroupOptions& group) {
  return {
      {"fallback", "none|ring", "when no ring is left: fail, or reduce on the hosts (default none)",
       [&](auto v) {
         group.fallback = one_of("fallback", v, Word{"none", host::Fallback::none},
                                 Word{"ring", host::Fallback::ring});
       }},
      {"missing-rings", "leave-out|refuse",
       "when a ring does not answer all ranks: go on with the others, or not (default leave-out)",
       [&](auto v) {
         group.missing_rings =
             one_of("missing-rings", v, Word{"leave-out", host::MissingRings::leave_out},
                    Word{"refuse", host::MissingRings::refuse});
       }},
  };
}

/// Which thread does the work.
std::vector<Option> driver_rows(host::GroupOptions& group) {
  return {
      {"progress-by", "thread|caller",
       "who drives calls that are not waited for: a thread of the group's, or only this one "
       "(default thread)",
       [&](auto v) {
         group.progress = one_of("progress-by", v, Word{"thread", host::ProgressBy::thread},
                                 Word{"caller", host::ProgressBy::caller});
       }},
  };
}

/// How this rank reaches the network.
std::vector<Option> device_rows(host::GroupOptions& group, std::string& devargs) {
  return {
      {"transport", "software|verbs",
       "who speaks RoCEv2: this process, or a NIC (default software)",
       [&](auto v) {
         group.transport = one_of("transport", v, Word{"software", host::TransportKind::software},
                                  Word{"verbs", host::TransportKind::verbs});
       }},
      {"device", "DEVICE",
       "software: an interface, as eth1 or iface=eth1, or DPDK devargs (net_..., PCI address); "
       "verbs: rxe0",
       [&](auto v) { set_device(group, devargs, v); }},
      {"list-devices", nullptr, "print which this host has, and end",
       [](auto) { print_and_exit(device_table(host::list_devices())); }},
      {"ip", "ADDRESS",
       "software: this rank's address, as the switch's ring names it (the interface's own)",
       [&](auto v) { group.ip = v; }},
      {"mac", "MAC", "software: this rank's MAC address (default: the device's)",
       [&](auto v) { group.mac = v; }},
      {"gid-index", "N", "verbs: entry of the GID table that is RoCE v2 (default 1)",
       [&](auto v) { group.gid_index = number<std::uint8_t>("gid-index", v, 0, 255); }},
  };
}

/// What a ring and its connections are allowed.
std::vector<Option> connection_rows(host::GroupOptions& group) {
  return {
      {"window", "N", "messages under way, as the ring is configured (default 8)",
       [&](auto v) { group.window = number<std::uint32_t>("window", v, 1, kMaxWindow); }},
      {"message-bytes", "N", "longest message, 40-byte header included (default 65536)",
       [&](auto v) {
         group.message_bytes =
             static_cast<std::uint32_t>(byte_count("message-bytes", v, 0, kMaxMessageBytes));
       }},
      {"mtu", "N", "path MTU: 256, 512, 1024, 2048, 4096 (default 1024)",
       [&](auto v) {
         group.path_mtu = number<std::uint32_t>("mtu", v, kPathMtus.front(), kPathMtus.back());
       }},
      {"ack-timeout-ms", "N", "until a packet is repeated (default 67; over verbs --timeout / 8)",
       [&](auto v) {
         group.ack_timeout =
             std::chrono::milliseconds(number<std::uint32_t>("ack-timeout-ms", v, 1, 60000));
       }},
      {"retries", "N",
       "without progress before the connection fails (default 7; software: for ever)",
       [&](auto v) { group.retry_count = number<std::uint8_t>("retries", v, 0, 7); }},
  };
}

/// One run of the job, and how long its ranks wait for one another.
std::vector<Option> run_rows(host::GroupOptions& group) {
  return {
      {"epoch", "N", "incarnation of the job; must grow (default: rank 0's wall clock)",
       [&](auto v) { group.epoch = number<std::uint32_t>("epoch", v, 1, UINT32_MAX); }},
      {"loss", "P", "software: drop this share of our own frames, to watch recovery (default 0)",
       [&](auto v) { group.loss = number<double>("loss", v, 0, 0.9); }},
      {"seed", "N", "of that dice (default 1)",
       [&](auto v) { group.seed = number<std::uint64_t>("seed", v, 0, UINT64_MAX); }},
      {"timeout", "SECONDS", "for the rendezvous, and without any progress later (default 10)",
       [&](auto v) { group.form_timeout = group.timeout = seconds("timeout", v); }},
      {"lateness", "SECONDS",
       "until the last rank makes a call that others have made (default: any time)",
       [&](auto v) { group.lateness = seconds("lateness", v); }},
      {"keep-alive", "SECONDS",
       "until a machine or network that is gone is noticed, at least 3 (default --timeout)",
       [&](auto v) { group.keep_alive = seconds("keep-alive", v); }},
  };
}

} // namespace

std::vector<Option> group_option_rows(host::GroupOptions& group, std::string& devargs) {
  group.ring_ids = host::RingIds::open; // until --ring names them
  std::vector<Option> rows;
  for (const std::vector<Option>& more :
       {rank_rows(group), ring_rows(group), device_rows(group, devargs), lack_rows(group),
        connection_rows(group), run_rows(group), driver_rows(group)}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

} // namespace weir::app
