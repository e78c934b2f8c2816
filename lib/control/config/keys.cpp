// SPDX-License-Identifier: BSD-3-Clause
#include "config/keys.hpp"

#include "config/config.hpp"
#include "ring/ring_set.hpp"
#include "ring/ring_spec.hpp"
#include "weir/ina.hpp"
#include "weir/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace weir::config {
namespace {

std::string text_of(std::uint64_t number) {
  return fmt::format("{}", number);
}

constexpr std::uint64_t kMostRings = 4096;
constexpr std::string_view kFileForm = "the path of a PEM file";
constexpr std::string_view kNameForm =
    "a name of at most 64 letters, digits, '_', '.', '@' and '-'";
constexpr std::string_view kAddressForm = "a unicast IPv4 or IPv6 address";

/// The defaults are those of the structures that are filled.
std::vector<Key> make_keys() {
  const PortConfig port;
  const L2Config l2;
  const ConnectionsConfig connections;
  const ring::RingSpec ring;
  return {
      {"", Map{}, ""},
      {"eal", Map{}, "", "no options"},
      {"eal.options", List{{0, 256}, "EAL options"}, "passed to EAL unchanged", "none"},
      {"eal.options[]", Text{"an EAL option"}, ""},
      {"ports", List{{1, kMostPorts}, "ports"}, "the links that the switch joins"},
      {"ports[]", Map{}, ""},
      {"ports[].name", Text{"a name of letters, digits, '_', '.' and '-', but not all or json"},
       "name at the prompt"},
      {"ports[].device", Text{R"(a vdev as "net_tap0,iface=x" or a PCI address as "0000:3b:00.0")"},
       "DPDK devargs: a PCI address or a virtual device"},
      {"ports[].macs", List{{0, 4096}, "MAC addresses"},
       "stations behind this port; only weir-replay reads it", "none"},
      {"ports[].macs[]", Text{"a unicast MAC address as 52:54:00:00:00:01"}, ""},
      {"ports[].rx_queues", WholeNumber{{1, 16}}, "receive queues, spread over the rx lcores",
       text_of(port.rx_queues)},
      {"ports[].rx_steering", OneWordOf{kRxSteeringNames},
       "who spreads frames over the receive queues: a hash, or rules that bring ring members' "
       "frames "
       "to their ring's worker",
       std::string(kRxSteeringNames[static_cast<std::size_t>(port.rx_steering)])},
      {"ports[].mtu", WholeNumber{{1280, 9216}}, "bytes of Ethernet payload", text_of(port.mtu)},
      {"ports[].rx_descriptors", PowerOfTwo{{64, 32768}}, "receive descriptors of a queue",
       text_of(port.rx_descriptors)},
      {"ports[].tx_descriptors", PowerOfTwo{{64, 32768}}, "transmit descriptors of a queue",
       text_of(port.tx_descriptors)},
      {"ports[].outer_tag", OneWordOf{kOuterTagNames},
       "the outermost VLAN tag on the port's links, for af_packet, which does not report it",
       std::string(kOuterTagNames[0])},
      {"lcores", List{{1, 1024}, "lcores"}, "the CPUs that the switch takes, and for what",
       "control on 0, the rest on 1"},
      {"lcores[]", Map{}, ""},
      {"lcores[].id", WholeNumber{{0, 1023}}, "CPU"},
      {"lcores[].roles", List{{1, kRoleNames.size()}, "roles"},
       "what the lcore does; workers without a ring make reductions for the others"},
      {"lcores[].roles[]", OneWordOf{kRoleNames}, ""},
      {"lcores[].idle", OneWordOf{kIdleNames}, "what an idle lcore does",
       std::string(kIdleNames[static_cast<std::size_t>(LcoreConfig{}.idle)])},
      {"l2", Map{}, "", "its keys' defaults"},
      {"l2.aging_s", WholeNumber{{1, 1'000'000}}, "seconds until a silent station is forgotten",
       text_of(l2.aging_s)},
      {"l2.entries", PowerOfTwo{{16, 1U << 20}}, "most stations", text_of(l2.entries)},
      {"connections", Map{}, "", "its keys' defaults"},
      {"connections.plain_entries", WholeNumber{{1, 1U << 20}},
       "most plain queue pairs between ring neighbours", text_of(connections.plain_entries)},
      {"connections.aging_s", WholeNumber{{1, 1'000'000}},
       "seconds until a silent plain queue pair is forgotten", text_of(connections.aging_s)},
      {"metrics", Map{}, "", "no metrics"},
      {"metrics.listen", Text{"ADDRESS:PORT, such as 127.0.0.1:9464 or [::1]:9464"},
       "where Prometheus finds /metrics"},
      {"control", Map{}, "", "a Unix socket, control.sock in the run-time directory"},
      {"control.listen", List{{0, 8}, "addresses"}, "where the control service listens"},
      {"control.listen[]",
       Text{"unix:/PATH of at most 107 bytes, or ADDRESS:PORT, such as 192.0.2.1:9465 or "
            "[2001:db8::1]:9465"},
       ""},
      {"control.tls", Map{}, "", "no ADDRESS:PORT in control.listen"},
      {"control.tls.certificate", Text{kFileForm}, "the switch's certificate and its chain"},
      {"control.tls.key", Text{kFileForm}, "its key"},
      {"control.tls.client_authority", Text{kFileForm}, "who signs clients' certificates"},
      {"control.operators", List{{0, 64}, "names"},
       "common names of the certificates that may do all", "any, unless there are tenants"},
      {"control.operators[]", Text{kNameForm}, ""},
      {"tenants", List{{0, 1024}, "tenants"}, "who shares the switch, and what each may have of it",
       "none"},
      {"tenants[]", Map{}, ""},
      {"tenants[].name", Text{kNameForm}, "the common name in the tenant's certificates"},
      {"tenants[].rings", WholeNumber{{0, kMostRings}}, "most rings at once", "no limit"},
      {"tenants[].memory_mib", WholeNumber{{0, 1U << 20}},
       "MiB for the frames, slots and results of all its rings", "no limit"},
      {"tenants[].neighbours", WholeNumber{{0, ring::RingSet::kMostMembers}},
       "most neighbours that the switch remembers of its rings, withdrawn ones included",
       "an equal share"},
      {"tenants[].packets_per_second", WholeNumber{{1, 1'000'000'000}},
       "ring frames of all its hosts in a second", "no limit"},
      {"tenants[].hosts", List{{1, 64}, "blocks"},
       "where the members of its rings may have their addresses", "anywhere"},
      {"tenants[].hosts[]",
       Text{"a block of addresses as 10.1.0.0/16 or 2001:db8::/32, without bits behind the prefix"},
       ""},
      {"spare", Map{}, "", "no room"},
      {"spare.rings", WholeNumber{{0, kMostRings}}, "most rings made while the switch runs"},
      {"spare.members", WholeNumber{{0, ring::RingSet::kMostMembers}},
       "members of all such rings together"},
      {"spare.frames", WholeNumber{{0, 1U << 26}},
       "frames that the slots of all such rings can hold"},
      {"spare.ports", WholeNumber{{0, kMostPorts}}, "most ports more that a reload may open",
       text_of(SpareConfig{}.ports)},
      {"state_directory", Text{"an absolute path such as /var/lib/weir"},
       "where the switch remembers such rings", "none: spare.rings must be 0"},
      {"drain_s", WholeNumber{{0, 3600}},
       "most seconds for which a switch that is to stop waits for running collectives",
       text_of(Config{}.drain_s)},
      {"rings", List{{0, kMostRings}, "rings"}, "the jobs whose tensors the switch adds",
       "none: a plain switch"},
      {"rings[]", Map{}, ""},
      {"rings[].id", WholeNumber{{0, 0xffff'ffff}}, "the number in the INA header"},
      {"rings[].window", WholeNumber{{1, kMaxWindow}}, "messages a rank may have under way"},
      {"rings[].max_message_bytes", WholeNumber{{kInaHeaderBytes, kMaxMessageBytes}},
       "longest message, its 40-byte header included"},
      {"rings[].mtu", OneNumberOf{kPathMtus}, "path MTU of the job's queue pairs",
       text_of(ring.mtu)},
      {"rings[].patience", WholeNumber{{1, 86'400}},
       "seconds without a new packet of the ring after which the switch asks nobody and keeps "
       "nobody alive",
       text_of(ring.patience_ms / 1000)},
      {"rings[].keep_alive", OneWordOf{kKeepAliveNames},
       "how a rank that waits for a slower one is kept from giving up: by duplicate "
       "acknowledgements (ack), by RNR NAKs (rnr), not (off)",
       std::string(kKeepAliveNames[static_cast<std::size_t>(ring.keep_alive)])},
      {"rings[].lease", WholeNumber{{1, 31'536'000}},
       "seconds without a packet of any member after which the ring is reclaimed; at least "
       "patience",
       fmt::format("{}, or patience if that is longer", ring.lease_ms / 1000)},
      {"rings[].tenant", Text{"a tenant's name"}, "whose ring it is", "nobody's"},
      {"rings[].members", List{{kMinWorld, kMaxWorld}, "members"}, "the ranks, rank 0 first"},
      {"rings[].members[]", Map{}, ""},
      {"rings[].members[].ip", Text{kAddressForm}, "the rank's address"},
      {"rings[].members[].port", Text{"a port's name"},
       "the only port this member's packets may come from", "any port"},
  };
}

/// Without the numbers in brackets.
std::string path_of(std::string_view place) {
  std::string path;
  bool is_index = false;
  for (const char c : place) {
    is_index = is_index && c != ']';
    if (!is_index) {
      path += c;
    }
    is_index = is_index || c == '[';
  }
  return path;
}

/// A list of plain values says what each of them may be.
std::string allowed_with_entries(const Key& key) {
  const std::string entry = fmt::format("{}[]", key.path);
  const auto found = std::ranges::find(keys(), entry, &Key::path);
  const bool has_plain_entries =
      found != keys().end() && !std::holds_alternative<Map>(found->value);
  return has_plain_entries ? fmt::format("{}, each {}", allowed(key.value), allowed(found->value))
                           : allowed(key.value);
}

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

} // namespace

std::span<const Key> keys() {
  static const std::vector<Key> table = make_keys();
  return table;
}

const Key& key_of(std::string_view place) {
  const std::string path = path_of(place);
  const auto row = std::ranges::find(keys(), path, &Key::path);
  if (row == keys().end()) {
    throw std::logic_error(fmt::format("the key {} is read, but not in the table of keys", path));
  }
  return *row;
}

std::vector<std::string_view> names_in(std::string_view place) {
  const std::string above = place.empty() ? "" : path_of(place) + ".";
  std::vector<std::string_view> names;
  for (const Key& key : keys()) {
    const std::string_view name = key.path.substr(std::min(above.size(), key.path.size()));
    if (key.path.starts_with(above) && !name.empty() && name.find_first_of(".[") == name.npos) {
      names.push_back(name);
    }
  }
  return names;
}

std::string allowed(const Value& value) {
  return std::visit(
      Overloaded{
          [](const Map&) { return std::string("a map"); },
          [](const List& list) { return yaml::allowed_length(list.count, list.things); },
          [](const WholeNumber& number) { return yaml::allowed_number(number.range); },
          [](const PowerOfTwo& number) { return yaml::allowed_power(number.range); },
          [](const OneNumberOf& one) { return yaml::join_or(one.numbers); },
          [](const OneWordOf& one) { return yaml::join_or(one.words); },
          [](const Text& text) { return std::string(text.form); },
      },
      value);
}

std::string keys_as_text() {
  std::string text = "The configuration is YAML. Numbers are decimal or 0x hexadecimal. An unknown "
                     "key, a key that\n"
                     "stands twice and a value that is not allowed are errors: the switch tells "
                     "file, line, key, what\n"
                     "it found and what is allowed, and does not start. In the names of keys, [] "
                     "stands for each entry\n"
                     "of a list.\n"
                     "\n";
  for (const Key& key : keys()) {
    const bool is_explained = !key.meaning.empty();
    if (is_explained) {
      text += fmt::format("  {:<25}  {}; allowed: {}; {}\n", key.path, key.meaning,
                          allowed_with_entries(key),
                          key.without.empty() ? "needed" : "default: " + key.without);
    }
  }
  return text;
}

} // namespace weir::config
