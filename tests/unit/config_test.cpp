// SPDX-License-Identifier: BSD-3-Clause
#include "config/config.hpp"
#include "support/sanitized.hpp"
#include "support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <vector>

namespace weir::config::config_test {
namespace {

/// Has every key once. The rows below change one thing in it. Line numbers in the expected errors
/// count from its first line.
constexpr std::string_view kGood = R"(eal:
  options: ["--no-huge", "-m", "512"]
ports:
  - name: p0
    device: "net_tap0,iface=a"
    macs: ["52:54:00:00:00:01", "52:54:00:00:00:0A"]
    rx_queues: 2
    mtu: 1500
    rx_descriptors: 512
    tx_descriptors: 256
  - { name: p1, device: "0000:3b:00.0", macs: ["52:54:00:00:00:03"], mtu: 9000 }
lcores:
  - { id: 3, roles: [control], idle: sleep }
  - { id: 4, roles: [rx, worker] }
  - { id: 5, roles: [tx], idle: yield }
l2: { aging_s: 60, entries: 1024 }
connections: { plain_entries: 100, aging_s: 30 }
rings:
  - id: 1
    window: 4
    max_message_bytes: 16384
    mtu: 512
    members:
      - { ip: 10.0.0.1, port: p0 }
      - { ip: 10.0.0.2, port: p1 }
  - id: 0xfffffffe
    window: 8
    max_message_bytes: 40
    members:
      - ip: fd00::1
      - ip: fd00::2
        port: p1
      - ip: fd00::3
)";

/// kGood with `from`, which it holds once, replaced by `to`.
std::string with(std::string_view from, std::string_view to) {
  std::string text(kGood);
  const std::size_t at = text.find(from);
  if (at == std::string::npos || text.find(from, at + 1) != std::string::npos) {
    ADD_FAILURE() << "not once in kGood: " << from;
    return text;
  }
  return text.replace(at, from.size(), to);
}

/// kGood without its lines `first` to `last`.
std::string without_lines(int first, int last) {
  std::string text;
  int line = 1;
  for (const char c : kGood) {
    if (line < first || line > last) {
      text += c;
    }
    line += c == '\n' ? 1 : 0;
  }
  return text;
}

std::optional<std::string> error_of(std::string_view yaml) {
  try {
    parse_config(yaml, "f.yaml");
    return std::nullopt;
  } catch (const ConfigError& error) {
    return error.what();
  }
}

struct BadFile {
  std::string_view what;
  std::string yaml;
  std::string_view error; // what() without "f.yaml:"
};

constexpr std::string_view kMac = "52:54:00:00:00:01";

/// Two regions, before the rings.
std::string with_regions(std::string_view address, int members) {
  return fmt::format("regions: {{ address: {}, mac: \"02:57:45:00:00:01\", "
                     "rooms: {{ regions: 2, members: {}, frames: 64 }} }}\nrings:",
                     address, members);
}

std::vector<BadFile> document_rows() {
  return {
      {"empty file", "", "1: (document): found an empty file; allowed: one YAML document"},
      {"comments alone", "# nothing\n",
       "1: (document): found an empty file; allowed: one YAML document"},
      {"two documents", "ports: []\n---\n\nports: []\n",
       "2: (document): found a second document; allowed: one YAML document"},
      {"text after the document", "{ports: []}\n...\nrings\n",
       "3: (document): found a second document; allowed: one YAML document"},
      {"a list as the document", "- ports\n",
       "1: (document): found a list; allowed: a map with keys out of eal, ports, lcores, l2, "
       "stations, "
       "connections, metrics, control, tenants, operators, spare, state_directory, drain_s, "
       "regions, rings"},
      {"a word as the document", "\nports\n",
       "2: (document): found \"ports\"; allowed: a map with keys out of eal, ports, lcores, l2, "
       "stations, "
       "connections, metrics, control, tenants, operators, spare, state_directory, drain_s, "
       "regions, rings"},
      {"two empty documents", "---\n---\n",
       "2: (document): found a second document; allowed: one YAML document"},
      {"a bracket left open", "ports: [1,\n",
       "2: (document): found text that is not YAML (end of sequence flow not found); allowed: one "
       "YAML document"},
      {"a tab for indentation", "l2:\n\taging_s: 1\n",
       "2: (document): found text that is not YAML (illegal map value); "
       "allowed: one YAML "
       "document"},
      {"an empty document", "# c\n---\n",
       "2: (document): found nothing; allowed: a map with keys out of eal, ports, lcores, l2, "
       "stations, "
       "connections, metrics, control, tenants, operators, spare, state_directory, drain_s, "
       "regions, rings"},
      {"a comma first", ", ports: []\n",
       "1: (document): found text that is not YAML (no document begins so); allowed: one YAML "
       "document"},
      {"an alias without anchor", "ports: *p\n",
       "1: (document): found text that is not YAML (the referenced anchor is not defined); "
       "allowed: one YAML document"},
      {"brackets without end", std::string(100000, '['),
       "1: (document): found text that is not YAML (nested too deep); allowed: one YAML document"},
      {"a NUL", std::string("l2:\n  aging_s: \0\n", 16),
       "2: (document): found the byte 0x00; allowed: UTF-8 text without control characters"},
      {"yaml-cpp's end of file in the middle", with("rings:", "\x04rings:"),
       "18: (document): found the byte 0x04; allowed: UTF-8 text without control characters"},
      {"UTF-16", std::string("\xff\xfel\0002\0:\0", 8),
       "1: (document): found the byte 0x00; allowed: UTF-8 text without control characters"},
  };
}

std::vector<BadFile> key_rows() {
  return {
      {"an unknown key", with("l2: {", "vlan: 3\nl2: {"),
       "16: vlan: found an unknown key; allowed: eal, ports, lcores, l2, stations, connections, "
       "metrics, "
       "control, tenants, operators, spare, state_directory, drain_s, regions, rings"},
      {"a misspelt key", with("rings:", "ring:"),
       "18: ring: found an unknown key; allowed: eal, ports, lcores, l2, stations, connections, "
       "metrics, "
       "control, tenants, operators, spare, state_directory, drain_s, regions, rings; did "
       "you mean rings?"},
      {"a misspelt key deep inside", with("window: 4", "windw: 4"),
       "20: rings[0].windw: found an unknown key; allowed: id, parallel, window, "
       "max_message_bytes, mtu, "
       "patience, keep_alive, lease, tenant, members, parent, children; did you mean "
       "window?"},
      {"another case and a hyphen", with("rx_queues", "RX-Queues"),
       "7: ports[0].RX-Queues: found an unknown key; allowed: name, device, macs, rx_queues, "
       "rx_steering, mtu, rx_descriptors, "
       "tx_descriptors, outer_tag, bridge; did you mean rx_queues?"},
      {"an unknown key of eal", with("options:", "argv:"),
       "2: eal.argv: found an unknown key; allowed: options"},
      {"an unknown key of an lcore", with("id: 4, ", "id: 4, cpu: 4, "),
       "14: lcores[1].cpu: found an unknown key; allowed: id, roles, idle"},
      {"an unknown key of l2", with("l2: { aging_s", "l2: { aging"),
       "16: l2.aging: found an unknown key; allowed: aging_s, entries, loop_detection; did you "
       "mean aging_s?"},
      {"an unknown key of connections", with("plain_entries", "entries_plain"),
       "17: connections.entries_plain: found an unknown key; allowed: plain_entries, aging_s"},
      {"an unknown key of a member", with("ip: 10.0.0.2, port", "ip: 10.0.0.2, prot"),
       "25: rings[0].members[1].prot: found an unknown key; allowed: ip, port; did you mean port?"},
      {"a merge key", with("l2: {", "<<: {}\nl2: {"),
       "16: \"<<\": found an unknown key; allowed: eal, ports, lcores, l2, stations, connections, "
       "metrics, "
       "control, tenants, operators, spare, state_directory, drain_s, regions, rings"},
      {"a device split at its comma", with("device: \"0000:3b:00.0\"", "device: net_tap1,iface=b"),
       "11: ports[1].\"iface=b\": found an unknown key (a value with a comma needs quotes); "
       "allowed: name, device, "
       "macs, rx_queues, rx_steering, mtu, rx_descriptors, tx_descriptors, outer_tag, bridge"},
      {"a list as a key", with("l2: {", "? [a]\n: 1\nl2: {"),
       "16: (document): found a list as a key; allowed: eal, ports, lcores, l2, stations, "
       "connections, "
       "metrics, control, tenants, operators, spare, state_directory, drain_s, regions, rings"},
      {"an empty key", with("entries: 1024", "entries: 1024, : 5"),
       "16: l2: found nothing as a key; allowed: aging_s, entries, loop_detection"},
      {"a key twice", with("l2: {", "rings: []\nl2: {"),
       "19: rings: found the key a second time (first on line 16); allowed: each key once"},
      {"a key twice in one line", with("plain_entries: 100", "aging_s: 5"),
       "17: connections.aging_s: found the key a second time (first on line 17); allowed: each key "
       "once"},
      {"a key twice deep inside", with("    mtu: 512\n", "    mtu: 512\n    window: 4\n"),
       "23: rings[0].window: found the key a second time (first on line 20); allowed: each key "
       "once"},
      {"no ports", "rings: []\n",
       "1: ports: found nothing: the key is missing; allowed: a list of 1 to 32 ports"},
      {"a port without name", with("name: p1, ", ""),
       "11: ports[1].name: found nothing: the key is missing; allowed: a name of letters, digits, "
       "'_', '.' and '-', but not all or json"},
      {"a port without device", with("    device: \"net_tap0,iface=a\"\n", ""),
       "4: ports[0].device: found nothing: the key is missing; allowed: a vdev as "
       "\"net_tap0,iface=x\" or a PCI address "
       "as \"0000:3b:00.0\""},
      {"an lcore without id", with("id: 5, ", ""),
       "15: lcores[2].id: found nothing: the key is missing; allowed: a whole number, 0 to 1023"},
      {"an lcore without roles", with(", roles: [tx]", ""),
       "15: lcores[2].roles: found nothing: the key is missing; allowed: a list of 1 to 4 roles"},
      {"a ring without id", with("- id: 1\n    window", "- window"),
       "19: rings[0].id: found nothing: the key is missing; allowed: a whole number, 0 to "
       "4294967295"},
      {"a ring without window", without_lines(20, 20),
       "19: rings[0].window: found nothing: the key is missing; allowed: a whole number, 1 to "
       "1024"},
      {"a ring without message size", without_lines(21, 21),
       "19: rings[0].max_message_bytes: found nothing: the key is missing; allowed: a whole "
       "number, 40 to 1073741824"},
      {"a ring without members", without_lines(23, 25),
       "19: rings[0].members: found nothing: the key is missing; allowed: a list of 2 to 256 "
       "members"},
      {"a member without address", with("ip: 10.0.0.2, ", ""),
       "25: rings[0].members[1].ip: found nothing: the key is missing; allowed: a unicast IPv4 or "
       "IPv6 address"},
  };
}

std::vector<BadFile> kind_rows() {
  return {
      {"eal as a list", with("eal:\n  options: [\"--no-huge\", \"-m\", \"512\"]", "eal: [\"-m\"]"),
       "1: eal: found a list; allowed: a map with keys out of options"},
      {"eal without value", with("\n  options: [\"--no-huge\", \"-m\", \"512\"]", ""),
       "1: eal: found nothing; allowed: a map with keys out of options"},
      {"options as a word", with("[\"--no-huge\", \"-m\", \"512\"]", "--no-huge"),
       "2: eal.options: found \"--no-huge\"; allowed: a list of at most 256 EAL options"},
      {"an option that is a map", with("\"512\"]", "{a: b}]"),
       "2: eal.options[2]: found a map; allowed: an EAL option"},
      {"an empty option", with("\"512\"]", "\"\"]"),
       "2: eal.options[2]: found \"\"; allowed: an EAL option"},
      {"an option with a line break", with("\"512\"]", "\"5\\n2\"]"),
       "2: eal.options[2]: found \"5\\x0a2\"; allowed: an EAL option, without control characters"},
      {"-m with a word", with("\"512\"]", "lots]"),
       "2: eal.options[2]: found \"lots\" for -m; allowed: MiB of memory, 1 to 16777216"},
      {"-m without memory", with("\"-m\", \"512\"]", "-m0]"),
       "2: eal.options[1]: found \"-m0\" for -m; allowed: MiB of memory, 1 to 16777216"},
      {"-m at the end", with(", \"512\"]", "]"),
       "2: eal.options[1]: found \"-m\" for -m; allowed: MiB of memory, 1 to 16777216"},
      {"ports as a map", "ports: { name: p0 }\n",
       "1: ports: found a map; allowed: a list of 1 to 32 ports"},
      {"ports without value", "# first\nports:\n# last\n",
       "2: ports: found nothing; allowed: a list of 1 to 32 ports"},
      {"no port in the list", "ports: []\n",
       "1: ports: found a list of 0; allowed: a list of 1 to 32 ports"},
      {"a port that is a word", "ports:\n  - p0\n",
       "2: ports[0]: found \"p0\"; allowed: a map with keys out of name, device, macs, rx_queues, "
       "rx_steering, mtu, rx_descriptors, "
       "tx_descriptors, outer_tag, bridge"},
      {"a port that is not there",
       "ports:\n  - { name: p0, device: d0 }\n  -   # second\n\n  # third\n  - { name: p1 }\n",
       "3: ports[1]: found nothing; allowed: a map with keys out of name, device, macs, rx_queues, "
       "rx_steering, mtu, "
       "rx_descriptors, tx_descriptors, outer_tag, bridge"},
      {"a port that is null", "ports:\n  - { name: p0, device: d0 }\n  - ~\n",
       "3: ports[1]: found nothing; allowed: a map with keys out of name, device, macs, rx_queues, "
       "rx_steering, mtu, "
       "rx_descriptors, tx_descriptors, outer_tag, bridge"},
      {"a name that is a list", with("name: p1", "name: [p1]"),
       "11: ports[1].name: found a list; allowed: a name of letters, digits, '_', '.' and '-', but "
       "not all or json"},
      {"macs as a word", with("macs: [\"52:54:00:00:00:03\"]", "macs: \"52:54:00:00:00:03\""),
       "11: ports[1].macs: found \"52:54:00:00:00:03\"; allowed: a list of at most 4096 MAC "
       "addresses"},
      {"a number without value", with("rx_queues: 2", "rx_queues:"),
       "7: ports[0].rx_queues: found nothing; allowed: a whole number, 1 to 16"},
      {"a number that is a list", with("window: 4", "window: [4]"),
       "20: rings[0].window: found a list; allowed: a whole number, 1 to 1024"},
      {"roles as a word", with("[tx]", "tx"),
       "15: lcores[2].roles: found \"tx\"; allowed: a list of 1 to 4 roles"},
      {"l2 as a number", with("{ aging_s: 60, entries: 1024 }", "300"),
       "16: l2: found 300; allowed: a map with keys out of aging_s, entries, loop_detection"},
      {"connections as a list", with("{ plain_entries: 100, aging_s: 30 }", "[100, 30]"),
       "17: connections: found a list; allowed: a map with keys out of plain_entries, aging_s"},
      {"rings as a map", "ports: [{ name: p0, device: d0 }]\nrings:\n  id: 7\n",
       "3: rings: found a map; allowed: a list of at most 4096 rings"},
      {"a ring that is a number", "ports: [{ name: p0, device: d0 }]\nrings: [7]\n",
       "2: rings[0]: found 7; allowed: a map with keys out of id, parallel, window, "
       "max_message_bytes, mtu, "
       "patience, keep_alive, lease, tenant, members, parent, children"},
      {"a member that is an address", with("- { ip: 10.0.0.2, port: p1 }", "- 10.0.0.2"),
       "25: rings[0].members[1]: found \"10.0.0.2\"; allowed: a map with keys out of ip, port"},
      {"a member inside itself",
       with("    members:\n      - { ip: 10.0.0.1, port: p0 }", "    members: &m\n      - *m"),
       "23: rings[0].members[0]: found a list; allowed: a map with keys out of ip, port"},
  };
}

std::vector<BadFile> number_rows() {
  return {
      {"a word for a number", with("window: 4", "window: four"),
       "20: rings[0].window: found \"four\"; allowed: a whole number, 1 to 1024"},
      {"a fraction", with("window: 4", "window: 4.0"),
       "20: rings[0].window: found \"4.0\"; allowed: a whole number, 1 to 1024"},
      {"an exponent", with("window: 4", "window: 1e2"),
       "20: rings[0].window: found \"1e2\"; allowed: a whole number, 1 to 1024"},
      {"a unit", with("16384", "16k"),
       "21: rings[0].max_message_bytes: found \"16k\"; allowed: a whole number, 40 to 1073741824"},
      {"no patience", with("    mtu: 512\n", "    mtu: 512\n    patience: 0\n"),
       "23: rings[0].patience: found 0; allowed: a whole number, 1 to 86400"},
      {"a lease below the default patience",
       with("    mtu: 512\n", "    mtu: 512\n    lease: 599\n"),
       "23: rings[0].lease: found 599; allowed: at least the ring's patience, 600: so long may "
       "ranks that wait for a slower one be silent"},
      {"no lease", with("    mtu: 512\n", "    mtu: 512\n    lease: 0\n"),
       "23: rings[0].lease: found 0; allowed: a whole number, 1 to 31536000"},
      {"too long a drain", with("rings:", "drain_s: 3601\nrings:"),
       "18: drain_s: found 3601; allowed: a whole number, 0 to 3600"},
      {"patience in minutes", with("    mtu: 512\n", "    mtu: 512\n    patience: 10m\n"),
       "23: rings[0].patience: found \"10m\"; allowed: a whole number, 1 to 86400"},
      {"another keep-alive", with("    mtu: 512\n", "    mtu: 512\n    keep_alive: nak\n"),
       "23: rings[0].keep_alive: found \"nak\"; allowed: ack, rnr or off"},
      {"a negative number", with("window: 4", "window: -4"),
       "20: rings[0].window: found -4; allowed: a whole number, 1 to 1024"},
      {"an octal-looking number", with("window: 4", "window: 010"),
       "20: rings[0].window: found 010, octal or decimal by YAML's version; allowed: a whole "
       "number, 1 to 1024"},
      {"hexadecimal without digits", with("window: 4", "window: 0x"),
       "20: rings[0].window: found \"0x\"; allowed: a whole number, 1 to 1024"},
      {"an empty string", with("window: 4", "window: \"\""),
       "20: rings[0].window: found \"\"; allowed: a whole number, 1 to 1024"},
      {"more than 64 bits", with("0xfffffffe", "18446744073709551617"),
       "26: rings[1].id: found 18446744073709551617; allowed: a whole number, 0 to 4294967295"},
      {"more than 32 bits", with("0xfffffffe", "0x100000001"),
       "26: rings[1].id: found 0x100000001; allowed: a whole number, 0 to 4294967295"},
      {"a very long number", with("window: 4", "window: " + std::string(99, '9')),
       "20: rings[0].window: found "
       "\"999999999999999999999999999999999999999999999999999999999999\" ...; allowed: a "
       "whole number, 1 to 1024"},
      {"no window", with("window: 4", "window: 0"),
       "20: rings[0].window: found 0; allowed: a whole number, 1 to 1024"},
      {"a window too large", with("window: 4", "window: 1025"),
       "20: rings[0].window: found 1025; allowed: a whole number, 1 to 1024"},
      {"a message shorter than its header", with("16384", "39"),
       "21: rings[0].max_message_bytes: found 39; allowed: a whole number, 40 to 1073741824"},
      {"a message too long", with("16384", "1073741825"),
       "21: rings[0].max_message_bytes: found 1073741825; allowed: a whole number, 40 to "
       "1073741824"},
      {"no receive queue", with("rx_queues: 2", "rx_queues: 0"),
       "7: ports[0].rx_queues: found 0; allowed: a whole number, 1 to 16"},
      {"too many receive queues", with("rx_queues: 2", "rx_queues: 17"),
       "7: ports[0].rx_queues: found 17; allowed: a whole number, 1 to 16"},
      {"an MTU below IPv6's least", with("mtu: 1500", "mtu: 1279"),
       "8: ports[0].mtu: found 1279; allowed: a whole number, 1280 to 9216"},
      {"an MTU too large", with("mtu: 1500", "mtu: 9217"),
       "8: ports[0].mtu: found 9217; allowed: a whole number, 1280 to 9216"},
      {"an MTU that wraps in 16 bits", with("mtu: 1500", "mtu: 67036"),
       "8: ports[0].mtu: found 67036; allowed: a whole number, 1280 to 9216"},
      {"steering by nobody that there is",
       with("rx_queues: 2", "rx_queues: 2\n    rx_steering: queue"),
       "8: ports[0].rx_steering: found \"queue\"; allowed: rss or flow"},
      {"steering to the only queue", with("rx_queues: 2", "rx_steering: flow"),
       "7: ports[0].rx_steering: found flow, and one receive queue; allowed: rss, or flow with "
       "rx_queues: "
       "2 "
       "to 16"},
      {"descriptors that are no power of two", with("rx_descriptors: 512", "rx_descriptors: 1000"),
       "9: ports[0].rx_descriptors: found 1000; allowed: a power of two, 64 to 32768"},
      {"another outer tag", with("tx_descriptors: 256", "tx_descriptors: 256\n    outer_tag: QinQ"),
       "11: ports[0].outer_tag: found \"QinQ\"; allowed: 802.1Q or 802.1ad"},
      {"too few descriptors", with("tx_descriptors: 256", "tx_descriptors: 32"),
       "10: ports[0].tx_descriptors: found 32; allowed: a power of two, 64 to 32768"},
      {"too many descriptors", with("tx_descriptors: 256", "tx_descriptors: 65536"),
       "10: ports[0].tx_descriptors: found 65536; allowed: a power of two, 64 to 32768"},
      {"an lcore too high", with("id: 5", "id: 1024"),
       "15: lcores[2].id: found 1024; allowed: a whole number, 0 to 1023"},
      {"no aging", with("aging_s: 60", "aging_s: 0"),
       "16: l2.aging_s: found 0; allowed: a whole number, 1 to 1000000"},
      {"a table that is no power of two", with("entries: 1024", "entries: 1023"),
       "16: l2.entries: found 1023; allowed: a power of two, 16 to 1048576"},
      {"metrics at no port", with("l2:", "metrics: { listen: 127.0.0.1 }\nl2:"),
       "16: metrics.listen: found \"127.0.0.1\"; allowed: ADDRESS:PORT, such as 127.0.0.1:9464 or "
       "[::1]:9464"},
      {"metrics at port 0", with("l2:", "metrics: { listen: '127.0.0.1:0' }\nl2:"),
       "16: metrics.listen: found \"127.0.0.1:0\"; allowed: ADDRESS:PORT, such as 127.0.0.1:9464 "
       "or "
       "[::1]:9464"},
      {"metrics at a port that is none", with("l2:", "metrics: { listen: '127.0.0.1:65536' }\nl2:"),
       "16: metrics.listen: found \"127.0.0.1:65536\"; allowed: ADDRESS:PORT, such as "
       "127.0.0.1:9464 "
       "or [::1]:9464"},
      {"metrics at a name", with("l2:", "metrics: { listen: 'localhost:9464' }\nl2:"),
       "16: metrics.listen: found \"localhost:9464\"; allowed: ADDRESS:PORT, such as "
       "127.0.0.1:9464 "
       "or [::1]:9464"},
      {"metrics at an IPv6 address without brackets",
       with("l2:", "metrics: { listen: '::1:9464' }\nl2:"),
       "16: metrics.listen: found \"::1:9464\"; allowed: ADDRESS:PORT, such as 127.0.0.1:9464 or "
       "[::1]:9464"},
      {"control over a network without certificates",
       with("l2:", "control: { listen: ['192.0.2.1:9465'] }\nl2:"),
       "16: control.listen[0]: found \"192.0.2.1:9465\" without control.tls; allowed: unix:/PATH, "
       "or an "
       "ADDRESS:PORT together with control.tls: only who has a certificate may control a switch "
       "over a "
       "network"},
      {"control at a relative path", with("l2:", "control: { listen: ['unix:control.sock'] }\nl2:"),
       "16: control.listen[0]: found \"unix:control.sock\"; allowed: unix:/PATH of at most 107 "
       "bytes, or "
       "ADDRESS:PORT, such as 192.0.2.1:9465 or [2001:db8::1]:9465"},
      {"control at a path that no socket can have",
       with("l2:", "control: { listen: ['unix:/" + std::string(107, 'x') + "'] }\nl2:"),
       "16: control.listen[0]: found a path of 108 bytes; allowed: at most 107"},
      {"control without a place", with("l2:", "control: {}\nl2:"),
       "16: control.listen: found nothing: the key is missing; allowed: a list of at most 8 "
       "addresses"},
      {"certificates without an address",
       with("l2:",
            "control: { listen: [], tls: { certificate: a, key: b, client_authority: c } }\nl2:"),
       "16: control.tls: found certificates, but no address to use them at; allowed: tls: with an "
       "ADDRESS:PORT in listen:"},
      {"certificates that lack one",
       with("l2:", "control: { listen: ['[::1]:1'], tls: { certificate: a, key: b } }\nl2:"),
       "16: control.tls.client_authority: found nothing: the key is missing; allowed: the path of "
       "a PEM "
       "file"},
      {"operators without an address",
       with("l2:", "control: { listen: [], operators: [root] }\nl2:"),
       "16: control.operators: found names of certificates, but no address to use them at; "
       "allowed: operators: with an ADDRESS:PORT in listen:"},
      {"an operator who is a tenant",
       with("l2:", "control: { listen: ['[::1]:1'], operators: [red], tls: { certificate: a, key: "
                   "b, client_authority: c } }\ntenants: [{ name: red }]\nl2:"),
       "16: control.operators[0]: found \"red\", which is a tenant's name; allowed: a name that no "
       "tenant has"},
      {"a tenant of no certificate", with("l2:", "tenants: [{ name: 'red,CN=root' }]\nl2:"),
       "16: tenants[0].name: found \"red,CN=root\"; allowed: a name of at most 64 letters, digits, "
       "'_', '.', '@' and '-'"},
      {"a tenant with too long a name",
       with("l2:", "tenants: [{ name: " + std::string(65, 'x') + " }]\nl2:"),
       "16: tenants[0].name: found "
       "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\" "
       "...; allowed: a name of at most 64 letters, digits, '_', '.', '@' and '-'"},
      {"two tenants of one name", with("l2:", "tenants: [{ name: red }, { name: red }]\nl2:"),
       "16: tenants[1].name: found \"red\", which is tenants[0].name on line 16 too; allowed: each "
       "tenant once"},
      {"a tenant who may send nothing",
       with("l2:", "tenants: [{ name: red, packets_per_second: 0 }]\nl2:"),
       "16: tenants[0].packets_per_second: found 0; allowed: a whole number, 1 to 1000000000"},
      {"a tenant with half a block of hosts",
       with("l2:", "tenants: [{ name: red, hosts: [10.0.0.1/24] }]\nl2:"),
       "16: tenants[0].hosts[0]: found \"10.0.0.1/24\"; allowed: a block of addresses as "
       "10.1.0.0/16 or 2001:db8::/32, without bits behind the prefix"},
      {"a tenant without hosts", with("l2:", "tenants: [{ name: red, hosts: [] }]\nl2:"),
       "16: tenants[0].hosts: found a list of 0; allowed: a list of 1 to 64 blocks"},
      {"metrics without a place", with("l2:", "metrics: {}\nl2:"),
       "16: metrics.listen: found nothing: the key is missing; allowed: ADDRESS:PORT, such as "
       "127.0.0.1:9464 or [::1]:9464"},
      {"no plain connections", with("plain_entries: 100", "plain_entries: 0"),
       "17: connections.plain_entries: found 0; allowed: a whole number, 1 to 1048576"},
      {"aging for ever", with("aging_s: 30", "aging_s: 1000001"),
       "17: connections.aging_s: found 1000001; allowed: a whole number, 1 to 1000000"},
      {"a path MTU that InfiniBand lacks", with("mtu: 512", "mtu: 1500"),
       "22: rings[0].mtu: found 1500; allowed: 256, 512, 1024, 2048 or 4096"},
      {"a path MTU that is a word", with("mtu: 512", "mtu: jumbo"),
       "22: rings[0].mtu: found \"jumbo\"; allowed: 256, 512, 1024, 2048 or 4096"},
      {"more ports than there can be",
       with("rings:", "spare: { rings: 0, members: 0, frames: 0, ports: 31 }\nrings:"),
       "18: spare.ports: found 31, beside 2 ports; allowed: at most 32 ports in all"},
      {"regions without rooms",
       with("rings:", "regions: { address: 10.0.0.254, mac: \"02:57:45:00:00:01\" }\nrings:"),
       "18: regions.rooms: found nothing; allowed: a map with the keys regions, members, frames"},
      {"regions with a member each", with("rings:", with_regions("10.0.0.254", 3)),
       "18: regions.rooms.members: found 3, for 2 regions; allowed: at least 4, two of each"},
      {"regions with the address of a ring's member", with("rings:", with_regions("10.0.0.2", 4)),
       "18: regions.address: found \"10.0.0.2\", which a member of ring 1 has; allowed: an address "
       "that no host has"},
  };
}

std::vector<BadFile> name_rows() {
  return {
      {"an empty port name", with("name: p0", "name: \"\""),
       "4: ports[0].name: found \"\"; allowed: a name of letters, digits, '_', '.' and '-', but "
       "not all or json"},
      {"a port name with a space", with("name: p0", "name: port 0"),
       "4: ports[0].name: found \"port 0\"; allowed: a name of letters, digits, '_', '.' and '-', "
       "but not all or json"},
      {"a port name twice", with("name: p1", "name: p0"),
       "11: ports[1].name: found \"p0\", which is ports[0].name on line 4 too; allowed: each port "
       "name once"},
      {"an empty device", with("\"0000:3b:00.0\"", "\"\""),
       "11: ports[1].device: found \"\"; allowed: a vdev as \"net_tap0,iface=x\" or a PCI address "
       "as \"0000:3b:00.0\""},
      {"a device of arguments alone", with("\"0000:3b:00.0\"", "\",iface=x\""),
       "11: ports[1].device: found \",iface=x\"; allowed: a device name before the first comma"},
      {"a device twice", with("0000:3b:00.0", "net_tap0,iface=a"),
       "11: ports[1].device: found the device \"net_tap0\", which is ports[0].device on line 5 "
       "too; allowed: each device "
       "once"},
      {"a device twice with other arguments", with("0000:3b:00.0", "net_tap0,iface=b"),
       "11: ports[1].device: found the device \"net_tap0\", which is ports[0].device on line 5 "
       "too; allowed: each device "
       "once"},
      {"a short MAC", with(kMac, "52:54:00:00:01"),
       "6: ports[0].macs[0]: found \"52:54:00:00:01\"; allowed: a unicast MAC address as "
       "52:54:00:00:00:01"},
      {"a multicast MAC", with(kMac, "01:00:5e:00:00:01"),
       "6: ports[0].macs[0]: found \"01:00:5e:00:00:01\"; allowed: a unicast MAC address as "
       "52:54:00:00:00:01"},
      {"a broadcast MAC", with(kMac, "ff:ff:ff:ff:ff:ff"),
       "6: ports[0].macs[0]: found \"ff:ff:ff:ff:ff:ff\"; allowed: a unicast MAC address as "
       "52:54:00:00:00:01"},
      {"a MAC of zeros", with(kMac, "00:00:00:00:00:00"),
       "6: ports[0].macs[0]: found \"00:00:00:00:00:00\"; allowed: a unicast MAC address as "
       "52:54:00:00:00:01"},
      {"a MAC twice on one port", with(kMac, "52:54:00:00:00:0a"),
       "6: ports[0].macs[1]: found \"52:54:00:00:00:0A\", which is ports[0].macs[0] on line 6 too; "
       "allowed: each MAC "
       "address behind one port"},
      {"a MAC behind two ports", with("52:54:00:00:00:03", kMac),
       "11: ports[1].macs[0]: found \"52:54:00:00:00:01\", which is ports[0].macs[0] on line 6 "
       "too; allowed: each MAC "
       "address behind one port"},
      {"a ring id twice", with("id: 0xfffffffe", "id: 0x1"),
       "26: rings[1].id: found 0x1, which is rings[0].id on line 19 too; allowed: each ring id "
       "once"},
  };
}

std::vector<BadFile> lcore_rows() {
  return {
      {"no lcore in the list", "ports: [{ name: p0, device: d0 }]\nlcores: []\n",
       "2: lcores: found a list of 0; allowed: a list of 1 to 1024 lcores"},
      {"an lcore twice", with("id: 5", "id: 0x4"),
       "15: lcores[2].id: found 0x4, which is lcores[1].id on line 14 too; allowed: each lcore "
       "once"},
      {"an lcore without a role", with("[tx]", "[]"),
       "15: lcores[2].roles: found a list of 0; allowed: a list of 1 to 4 roles"},
      {"an unknown role", with("[tx]", "[main]"),
       "15: lcores[2].roles[0]: found \"main\"; allowed: control, rx, worker or tx"},
      {"a misspelt role", with("[rx, worker]", "[rx, workers]"),
       "14: lcores[1].roles[1]: found \"workers\"; allowed: control, rx, worker or tx; did you "
       "mean worker?"},
      {"a role that is a list", with("[tx]", "[[tx]]"),
       "15: lcores[2].roles[0]: found a list; allowed: control, rx, worker or tx"},
      {"a role twice on one lcore", with("[tx]", "[tx, tx]"),
       "15: lcores[2].roles[1]: found \"tx\", which is lcores[2].roles[0] on line 15 too; allowed: "
       "each role once per "
       "lcore"},
      {"nobody receives", with("[rx, worker]", "[worker]"),
       "13: lcores: found no lcore with the role rx; allowed: at least one lcore for each of rx, "
       "worker and tx"},
      {"nobody works", with("[rx, worker]", "[rx]"),
       "13: lcores: found no lcore with the role worker; allowed: at least one lcore for each of "
       "rx, worker and tx"},
      {"nobody sends", with("[tx]", "[rx]"),
       "13: lcores: found no lcore with the role tx; allowed: at least one lcore for each of rx, "
       "worker and tx"},
      {"two control lcores", with("[tx]", "[tx, control]"),
       "15: lcores[2].roles[1]: found \"control\", which is lcores[0].roles[0] on line 13 too; "
       "allowed: one control "
       "lcore"},
      {"an unknown way to idle", with("idle: yield", "idle: poll"),
       "15: lcores[2].idle: found \"poll\"; allowed: spin, yield or sleep"},
      {"a misspelt way to idle", with("idle: yield", "idle: Yeild"),
       "15: lcores[2].idle: found \"Yeild\"; allowed: spin, yield or sleep; did you mean yield?"},
  };
}

std::vector<BadFile> ring_rows() {
  return {
      {"one member", without_lines(25, 25),
       "24: rings[0].members: found a list of 1; allowed: a list of 2 to 256 members"},
      {"a host name", with("10.0.0.2", "worker2"),
       "25: rings[0].members[1].ip: found \"worker2\"; allowed: a unicast IPv4 or IPv6 address"},
      {"an address with its prefix", with("10.0.0.2", "10.0.0.2/24"),
       "25: rings[0].members[1].ip: found \"10.0.0.2/24\"; allowed: a unicast IPv4 or IPv6 "
       "address"},
      {"an IPv4 multicast address", with("10.0.0.2", "224.0.0.1"),
       "25: rings[0].members[1].ip: found \"224.0.0.1\"; allowed: a unicast IPv4 or IPv6 address"},
      {"the IPv4 broadcast address", with("10.0.0.2", "255.255.255.255"),
       "25: rings[0].members[1].ip: found \"255.255.255.255\"; allowed: a unicast IPv4 or IPv6 "
       "address"},
      {"no IPv4 address", with("10.0.0.2", "0.0.0.0"),
       "25: rings[0].members[1].ip: found \"0.0.0.0\"; allowed: a unicast IPv4 or IPv6 address"},
      {"IPv4 loopback", with("10.0.0.2", "127.0.0.1"),
       "25: rings[0].members[1].ip: found \"127.0.0.1\"; allowed: a unicast IPv4 or IPv6 address"},
      {"an IPv6 multicast address", with("fd00::2", "ff02::1"),
       "31: rings[1].members[1].ip: found \"ff02::1\"; allowed: a unicast IPv4 or IPv6 address"},
      {"no IPv6 address", with("fd00::2", "\"::\""),
       "31: rings[1].members[1].ip: found \"::\"; allowed: a unicast IPv4 or IPv6 address"},
      {"IPv6 loopback", with("fd00::2", "\"::1\""),
       "31: rings[1].members[1].ip: found \"::1\"; allowed: a unicast IPv4 or IPv6 address"},
      {"an IPv4 address twice", with("10.0.0.2", "10.0.0.1"),
       "25: rings[0].members[1].ip: found \"10.0.0.1\", which is rings[0].members[0].ip on line 24 "
       "too; allowed: each "
       "address once per ring"},
      {"an IPv4 address twice, once mapped", with("10.0.0.2", "\"::ffff:10.0.0.1\""),
       "25: rings[0].members[1].ip: found \"::ffff:10.0.0.1\", which is rings[0].members[0].ip on "
       "line 24 too; allowed: "
       "each address once per ring"},
      {"an IPv6 address twice, written otherwise", with("fd00::3", "fd00:0::0001"),
       "33: rings[1].members[2].ip: found \"fd00:0::0001\", which is rings[1].members[0].ip on "
       "line 30 too; allowed: "
       "each address once per ring"},
      {"IPv4 and IPv6 in one ring", with("fd00::3", "10.0.0.3"),
       "33: rings[1].members[2].ip: found \"10.0.0.3\" in a ring whose first member is fd00::1; "
       "allowed: members all "
       "IPv4 or all IPv6"},
      {"a port that does not exist", with("ip: 10.0.0.2, port: p1", "ip: 10.0.0.2, port: eth7"),
       "25: rings[0].members[1].port: found \"eth7\"; allowed: p0 or p1"},
      {"a port by number", with("ip: 10.0.0.2, port: p1", "ip: 10.0.0.2, port: 1"),
       "25: rings[0].members[1].port: found 1; allowed: p0 or p1; did you mean p1?"},
      {"a port with another number", with("ip: 10.0.0.2, port: p1", "ip: 10.0.0.2, port: p2"),
       "25: rings[0].members[1].port: found \"p2\"; allowed: p0 or p1"},
      {"a misspelt port", with("ip: 10.0.0.2, port: p1", "ip: 10.0.0.2, port: P1"),
       "25: rings[0].members[1].port: found \"P1\"; allowed: p0 or p1; did you mean p1?"},
      {"an address behind two ports, by two rings",
       "ports: [{ name: a, device: d0 }, { name: b, device: d1 }]\nrings:\n"
       "- { id: 1, window: 1, max_message_bytes: 40, members: [{ ip: 10.0.0.1 }, { ip: 10.0.0.2, "
       "port: b }] }\n"
       "- { id: 2, window: 1, max_message_bytes: 40, members: [{ ip: 10.0.0.2, port: a }, { ip: "
       "10.0.0.3 }] }\n",
       "4: rings[1].members[0].port: found \"a\" for 10.0.0.2, which rings[0].members[1].port on "
       "line 3 ties to b; allowed: one port for each address"},
      {"a history of more than a quarter of the PSN space", // 2 * 4 * (524288 + 1) = 2^22 + 8
       with("max_message_bytes: 16384", "max_message_bytes: 268435457"),
       "21: rings[0].max_message_bytes: found 268435457 with window 4 and mtu 512: a history of 2 "
       "* 4 * 524289 = 4194312 packets; allowed: at most 4194304 packets, a quarter of the 24-bit "
       "PSN space: a window of at most 3 or a max_message_bytes of at most 268435456"},
      {"a message longer than a quarter of the PSN space",
       "ports: [{ name: p0, device: d0 }]\nrings:\n  - { id: 1, window: 2, max_message_bytes: "
       "0x40000000, mtu: 256, "
       "members: [] }\n",
       "3: rings[0].max_message_bytes: found 1073741824 with window 2 and mtu 256: a history of 2 "
       "* 2 * 4194304 = 16777216 packets; allowed: at most 4194304 packets, a quarter of the "
       "24-bit "
       "PSN space: a max_message_bytes of at most 268435456"},
      {"IPv4 packets too long for a member's port", // 4096 + 20 + 8 + 12 + 16 + 4 + 4
       with("mtu: 512", "mtu: 4096"),
       "22: rings[0].mtu: found 4096, which makes packets of 4160 bytes for 10.0.0.1, over port "
       "p0's mtu of 1500; "
       "allowed: 256, 512 or 1024 here or at least 4160 in ports[0].mtu"},
      {"one byte too long for the second member's port",
       "ports:\n- { name: a, device: d0, mtu: 2112 }\n- { name: b, device: d1, mtu: 2111 "
       "}\nrings:\n- { id: 1, window: "
       "1, max_message_bytes: 40, mtu: 2048,\n    members: [{ ip: 10.0.0.1, port: a }, { ip: "
       "10.0.0.2, port: b }] }\n",
       "5: rings[0].mtu: found 2048, which makes packets of 2112 bytes for 10.0.0.2, over port b's "
       "mtu of 2111; "
       "allowed: 256, 512 or 1024 here or at least 2112 in ports[1].mtu"},
      {"IPv6 packets too long for a port that a member may be behind",
       with("    max_message_bytes: 40\n", "    max_message_bytes: 40\n    mtu: 2048\n"),
       "29: rings[1].mtu: found 2048, which makes packets of 2132 bytes for fd00::1, over port "
       "p0's mtu of 1500; "
       "allowed: 256, 512 or 1024 here or at least 2132 in ports[0].mtu"},
  };
}

void expect_errors(const std::vector<BadFile>& rows) {
  for (const BadFile& row : rows) {
    const std::optional<std::string> error = error_of(row.yaml);
    EXPECT_EQ(error.value_or("no error"), "f.yaml:" + std::string(row.error)) << row.what;
  }
}

TEST(ConfigErrors, Document) {
  expect_errors(document_rows());
}

TEST(ConfigErrors, Keys) {
  expect_errors(key_rows());
}

TEST(ConfigErrors, Kinds) {
  expect_errors(kind_rows());
}

TEST(ConfigErrors, Numbers) {
  expect_errors(number_rows());
}

TEST(ConfigErrors, Names) {
  expect_errors(name_rows());
}

TEST(ConfigErrors, Lcores) {
  expect_errors(lcore_rows());
}

TEST(ConfigErrors, Rings) {
  expect_errors(ring_rows());
}

std::string ports_text(int count) {
  std::string text = "ports:\n";
  for (int i = 0; i < count; ++i) {
    text += "- { name: p" + std::to_string(i) + ", device: d" + std::to_string(i) + " }\n";
  }
  return text;
}

std::string ring_text(int members) {
  std::string text = "rings:\n- id: 1\n  window: 1\n  max_message_bytes: 40\n  members:\n";
  for (int i = 0; i < members; ++i) {
    text += "  - ip: 10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1) + "\n";
  }
  return text;
}

TEST(ConfigErrors, MostPortsAndMembers) {
  EXPECT_EQ(parse_config(ports_text(32), "f.yaml").ports.size(), 32U);
  EXPECT_EQ(error_of(ports_text(33)),
            "f.yaml:2: ports: found a list of 33; allowed: a list of 1 to 32 ports");
  EXPECT_EQ(parse_config(ports_text(1) + ring_text(256), "f.yaml").rings[0].members.size(), 256U);
  EXPECT_EQ(error_of(ports_text(1) + ring_text(257)),
            "f.yaml:8: rings[0].members: found a list of 257; allowed: a list of 2 to 256 members");
}

TEST(Config, LcoresMayBeLeftToTheSwitch) {
  const std::string ports = ports_text(1);
  EXPECT_EQ(parse_config(ports + "lcores: auto\n", "f.yaml").lcores_by, LcoresBy::the_switch);
  EXPECT_EQ(
      parse_config(ports + "lcores:\n- { id: 3, roles: [rx, worker, tx] }\n", "f.yaml").lcores_by,
      LcoresBy::file);
  EXPECT_EQ(error_of(ports + "lcores: some\n"),
            "f.yaml:3: lcores: found \"some\"; allowed: auto, or a list of 1 to 1024 lcores");
  EXPECT_EQ(error_of(ports + "lcores: { id: 3 }\n"),
            "f.yaml:3: lcores: found a map; allowed: auto, or a list of 1 to 1024 lcores");
}

TEST(Config, EveryKey) {
  const Config config = parse_config(kGood, "f.yaml");
  EXPECT_EQ(config.eal_options, (std::vector<std::string>{"--no-huge", "-m", "512"}));

  ASSERT_EQ(config.ports.size(), 2U);
  const PortConfig& port = config.ports[0];
  EXPECT_EQ(port.name, "p0");
  EXPECT_EQ(port.device, "net_tap0,iface=a");
  ASSERT_EQ(port.macs.size(), 2U);
  EXPECT_EQ(port.macs[1].bytes, (std::array<std::uint8_t, 6>{0x52, 0x54, 0, 0, 0, 0x0a}));
  EXPECT_EQ(port.rx_queues, 2);
  EXPECT_EQ(port.rx_steering, RxSteering::rss);
  EXPECT_EQ(port.mtu, 1500);
  EXPECT_EQ(port.rx_descriptors, 512);
  EXPECT_EQ(port.tx_descriptors, 256);
  EXPECT_EQ(config.ports[1].device, "0000:3b:00.0");
  EXPECT_EQ(config.ports[1].mtu, 9000);

  ASSERT_EQ(config.lcores.size(), 3U);
  EXPECT_EQ(config.lcores[0].id, 3U);
  EXPECT_EQ(config.lcores[0].roles, std::vector{Role::control});
  EXPECT_EQ(config.lcores[0].idle, Idle::sleep);
  EXPECT_EQ(config.lcores[1].roles, (std::vector{Role::rx, Role::worker}));
  EXPECT_EQ(config.lcores[1].idle, Idle::spin);
  EXPECT_EQ(config.lcores[2].roles, std::vector{Role::tx});
  EXPECT_EQ(config.lcores[2].idle, Idle::yield);

  EXPECT_EQ(config.l2.aging_s, 60U);
  EXPECT_EQ(config.l2.entries, 1024U);
  EXPECT_EQ(config.connections.plain_entries, 100U);
  EXPECT_EQ(config.connections.aging_s, 30U);

  ASSERT_EQ(config.rings.size(), 2U);
  const ring::RingSpec& ring = config.rings[0];
  EXPECT_EQ(ring.id, 1U);
  EXPECT_EQ(ring.window, 4U);
  EXPECT_EQ(ring.max_message_bytes, 16384U);
  EXPECT_EQ(ring.mtu, 512);
  EXPECT_EQ(ring.packets_per_message(), 32U);
  ASSERT_EQ(ring.members.size(), 2U);
  EXPECT_TRUE(ring.members[1].ip.is_v4());
  EXPECT_EQ(ring.members[1].ip.bytes,
            (std::array<std::uint8_t, 16>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2}));
  EXPECT_EQ(ring.members[1].port, 1);

  EXPECT_EQ(config.rings[1].id, 0xffff'fffeU);
  EXPECT_EQ(config.rings[1].mtu, 1024);
  EXPECT_EQ(config.rings[1].packets_per_message(), 1U);
  ASSERT_EQ(config.rings[1].members.size(), 3U);
  EXPECT_FALSE(config.rings[1].members[2].ip.is_v4());
  EXPECT_EQ(config.rings[1].members[2].ip.bytes,
            (std::array<std::uint8_t, 16>{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3}));
  EXPECT_EQ(config.rings[1].members[2].port, std::nullopt);
  EXPECT_EQ(config.rings[1].members[1].port, 1);
}

TEST(Config, ControlListensWhereItIsTold) {
  EXPECT_TRUE(parse_config(kGood, "f.yaml").control.is_default);
  const auto read = [](std::string_view control) {
    return parse_config(with("l2:", fmt::format("control: {}\nl2:", control)), "f.yaml").control;
  };
  const ControlConfig nowhere = read("{ listen: [] }");
  EXPECT_FALSE(nowhere.is_default);
  EXPECT_TRUE(nowhere.local.empty() && nowhere.remote.empty());
  const std::string longest = "/" + std::string(106, 'x');
  const ControlConfig both =
      read("{ listen: ['unix:/run/a b.sock', '[::1]:9465', '127.0.0.1:1', 'unix:" + longest +
           "'], tls: { certificate: a, key: b, client_authority: c } }");
  EXPECT_EQ(both.local, (std::vector<std::string>{"/run/a b.sock", longest}));
  EXPECT_EQ(both.remote, (std::vector<std::string>{"[::1]:9465", "127.0.0.1:1"}));
  ASSERT_TRUE(both.tls);
  EXPECT_EQ(both.tls->certificate + both.tls->key + both.tls->client_authority, "abc");
}

TEST(Config, WhereMetricsAre) {
  EXPECT_EQ(parse_config(kGood, "f.yaml").metrics.listen, "");
  for (const std::string listen : {"127.0.0.1:9464", "0.0.0.0:1", "[::1]:65535"}) {
    const std::string text = with("l2:", "metrics: { listen: '" + listen + "' }\nl2:");
    EXPECT_EQ(parse_config(text, "f.yaml").metrics.listen, listen);
  }
}

TEST(Config, PatienceOfARing) {
  const Config patient = parse_config(kGood, "f.yaml");
  EXPECT_EQ(patient.rings[0].patience_ms, 600'000U); // ten minutes
  EXPECT_EQ(patient.rings[0].keep_alive, ring::KeepAlive::ack);
  const Config config = parse_config(
      with("    mtu: 512\n", "    mtu: 512\n    patience: 30\n    keep_alive: rnr\n"), "f.yaml");
  EXPECT_EQ(config.rings[0].patience_ms, 30'000U);
  EXPECT_EQ(config.rings[0].keep_alive, ring::KeepAlive::rnr);
}

TEST(Config, LeaseOfARing) {
  const auto lease_with = [](const std::string& keys) {
    return parse_config(with("    mtu: 512\n", "    mtu: 512\n" + keys), "f.yaml")
        .rings[0]
        .lease_ms;
  };
  EXPECT_EQ(lease_with(""), 3'600'000U); // an hour
  EXPECT_EQ(lease_with("    lease: 600\n"), 600'000U);
  EXPECT_EQ(lease_with("    patience: 2\n    lease: 3\n"), 3'000U);
  EXPECT_EQ(lease_with("    patience: 86400\n"), 86'400'000U) << "never shorter than patience";
}

TEST(Config, HowLongAStopMayWait) {
  EXPECT_EQ(parse_config(kGood, "f.yaml").drain_s, 5U);
  EXPECT_EQ(parse_config(with("rings:", "drain_s: 0\nrings:"), "f.yaml").drain_s, 0U);
}

TEST(Config, TenantsAndTheirRings) {
  const Config config = parse_config(
      with("l2:", "control: { listen: ['[::1]:1'], operators: [root, admin@dc1], tls: { "
                  "certificate: a, key: b, client_authority: c } }\n"
                  "tenants: [{ name: red, rings: 4, memory_mib: 512, packets_per_second: 1000000 "
                  "}, { name: blue }]\nl2:"),
      "f.yaml");
  EXPECT_EQ(config.control.operators, (std::vector<std::string>{"root", "admin@dc1"}));
  ASSERT_EQ(config.tenants.size(), 2U);
  EXPECT_EQ(config.tenants[0].name, "red");
  EXPECT_EQ(config.tenants[0].rings, 4);
  EXPECT_EQ(config.tenants[0].memory_mib, 512U);
  EXPECT_EQ(config.tenants[0].packets_per_second, 1'000'000U);
  EXPECT_FALSE(config.tenants[1].rings || config.tenants[1].memory_mib ||
               config.tenants[1].packets_per_second);
  EXPECT_EQ(config.rings[0].tenant, "");

  const auto owned = [&](std::string_view tenant) {
    return parse_config(
        with("    mtu: 512\n", fmt::format("    mtu: 512\n    tenant: {}\n", tenant)) +
            "tenants: [{ name: red }]\n",
        "f.yaml");
  };
  EXPECT_EQ(owned("red").rings[0].tenant, "red");
  EXPECT_THROW(owned("blue"), ConfigError);
  EXPECT_THROW(parse_config(with("    mtu: 512\n", "    mtu: 512\n    tenant: red\n"), "f.yaml"),
               ConfigError);
}

/// A configured ring, and one that somebody asks for, by the place in the text.
TEST(Config, MembersAreHostsOfTheirTenant) {
  const auto error_with = [](std::string_view hosts, std::string_view members) {
    const auto config = fmt::format("ports: [{{ name: p0, device: net_null0 }}]\n"
                                    "tenants: [{{ name: red, hosts: {} }}, {{ name: blue }}]\n"
                                    "rings:\n"
                                    "  - {{ id: 1, window: 1, max_message_bytes: 64, tenant: red,\n"
                                    "      members: [{}] }}\n",
                                    hosts, members);
    try {
      parse_config(config, "f.yaml");
      return std::string("none");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(error_with("[10.1.0.0/16, 10.2.0.0/31]", "{ ip: 10.1.255.255 }, { ip: 10.2.0.1 }"),
            "none");
  EXPECT_EQ(error_with("[10.1.0.0/16, 10.2.0.0/31]", "{ ip: 10.1.0.0 }, { ip: 10.2.0.2 }"),
            "f.yaml:5: rings[0].members[1].ip: found \"10.2.0.2\", which is no host of tenant red; "
            "allowed: an address in its hosts:, 10.1.0.0/16, 10.2.0.0/31");
  EXPECT_EQ(error_with("['2001:db8::/32']", "{ ip: '2001:db8::1' }, { ip: '2001:db8::2' }"),
            "none");
  EXPECT_NE(error_with("['2001:db8::/32']", "{ ip: '2001:db9::1' }, { ip: '2001:db8::2' }"),
            "none");

  const Config running = parse_config("ports: [{ name: p0, device: net_null0 }]\n"
                                      "tenants: [{ name: red, hosts: [10.1.0.0/16] }]\n",
                                      "f.yaml");
  EXPECT_THROW(
      parse_rings("{ id: 1, window: 1, max_message_bytes: 64, tenant: red, members: [{ ip: "
                  "10.1.0.1 }, { ip: 10.2.0.1 }] }",
                  "ring", running),
      ConfigError);
}

/// RFC 4632 for IPv4, RFC 4291 §2.3 for IPv6; the bounds are by hand.
TEST(AddressBlocks, HaveTheAddressesWithTheirFirstBits) {
  struct Row {
    std::string_view block;
    std::string_view address;
    bool is_in;
  };

  for (const Row& row : {
           Row{"0.0.0.0/0", "223.255.255.255", true},
           Row{"0.0.0.0/0", "2001:db8::1", false},
           Row{"::/0", "2001:db8::1", true},
           Row{"::/0", "10.0.0.1", false},
           Row{"10.0.0.0/8", "10.255.255.255", true},
           Row{"10.0.0.0/8", "11.0.0.0", false},
           Row{"10.128.0.0/9", "10.127.255.255", false},
           Row{"192.0.2.8/29", "192.0.2.15", true},
           Row{"192.0.2.8/29", "192.0.2.16", false},
           Row{"192.0.2.8/29", "192.0.2.7", false},
           Row{"192.0.2.9/32", "192.0.2.9", true},
           Row{"192.0.2.9/32", "192.0.2.8", false},
           Row{"2001:db8::/33", "2001:db8:7fff::1", true},
           Row{"2001:db8::/33", "2001:db8:8000::1", false},
           Row{"2001:db8::1/128", "2001:db8::1", true},
           Row{"2001:db8::1/128", "2001:db8::", false},
       }) {
    const auto block = parse_block(row.block);
    ASSERT_TRUE(block) << row.block;
    EXPECT_EQ(block->contains(*wire::parse_ip(row.address)), row.is_in)
        << row.address << " in " << row.block;
    EXPECT_EQ(to_string(*block), row.block);
  }
  for (const char* text :
       {"", "/", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/ 8",
        "10.0.0.0/8 ", "10.0.0.0/8/8", "10.0.0/8", "10.0.0.1/8", "2001:db8::/129", "2001:db8::1/32",
        "::ffff:10.0.0.0/104", "::ffff:10.0.0.0/8", "/8", "10.0.0.0/0x8"}) {
    EXPECT_FALSE(parse_block(text)) << text;
  }
}

TEST(Config, RulesMaySteer) {
  const Config config = parse_config(
      "ports: [{ name: p0, device: net_null0, rx_steering: flow, rx_queues: 2 }]", "f.yaml");
  EXPECT_EQ(config.ports[0].rx_steering, RxSteering::flow);
}

/// Stations beside two ports, of which p1 does not bridge.
std::string with_stations(std::string_view stations, unsigned entries = 8192) {
  return fmt::format("ports: [{{ name: p0, device: d0 }}, {{ name: p1, device: d1, bridge: no }}]\n"
                     "l2: {{ entries: {} }}\n"
                     "stations: {}\n",
                     entries, stations);
}

TEST(Config, PortsMayLeaveTheBridge) {
  const Config config = parse_config(with_stations("[]"), "f.yaml");
  EXPECT_EQ(config.ports[0].bridge, YesNo::yes);
  EXPECT_EQ(config.ports[1].bridge, YesNo::no);
  EXPECT_EQ(config.l2.loop_detection, YesNo::yes);
  EXPECT_EQ(error_of("ports: [{ name: p0, device: d0, bridge: maybe }]"),
            "f.yaml:1: ports[0].bridge: found \"maybe\"; allowed: yes or no");
}

TEST(Config, StationsAreTiedToPortsThatBridge) {
  const std::string mac = "52:54:00:00:00:07";
  const Config config =
      parse_config(with_stations(fmt::format("[{{ mac: '{}', port: p0 }}]", mac)), "f.yaml");
  ASSERT_EQ(config.stations.size(), 1U);
  EXPECT_EQ(to_string(config.stations[0].mac), mac);
  EXPECT_EQ(config.stations[0].port, "p0");
  const std::vector<std::pair<std::string, std::string>> rows{
      {"[{ mac: '52:54:00:00:00:07', port: p1 }]",
       "f.yaml:3: stations[0].port: found \"p1\", which has bridge: no; allowed: a port with "
       "bridge: yes"},
      {"[{ mac: '01:00:5e:00:00:01', port: p0 }]",
       "f.yaml:3: stations[0].mac: found \"01:00:5e:00:00:01\"; allowed: a unicast MAC address as "
       "52:54:00:00:00:01"},
      {"[{ mac: '52:54:00:00:00:07', port: p0 }, { mac: '52:54:00:00:00:07', port: p0 }]",
       "f.yaml:3: stations[1].mac: found \"52:54:00:00:00:07\", which is stations[0].mac on line 3 "
       "too; allowed: each station once"},
  };
  for (const auto& [stations, error] : rows) {
    EXPECT_EQ(error_of(with_stations(stations)), error);
  }
}

/// The MAC table has eight places for addresses whose hashes are alike.
TEST(Config, TiedStationsFillASixteenthOfTheTable) {
  std::string stations = "{ mac: '52:54:00:00:00:01', port: p0 }";
  EXPECT_EQ(error_of(with_stations("[" + stations + "]", 16)), std::nullopt);
  stations += ", { mac: '52:54:00:00:00:02', port: p0 }";
  EXPECT_EQ(error_of(with_stations("[" + stations + "]", 16)),
            "f.yaml:3: stations: found 2, with l2.entries 16; allowed: at most 1, or l2.entries of "
            "at least 32");
}

/// A switch runs with other ports than its file has by now.
TEST(Config, TiedStationsHavePortsThatAreOpen) {
  const std::string yaml = with_stations("[{ mac: '52:54:00:00:00:07', port: p0 }]");
  PortConfig other;
  other.name = "p5";
  try {
    parse_config(yaml, "f.yaml", {other});
    ADD_FAILURE() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "f.yaml:3: stations[0].port: found \"p0\"; allowed: p5");
  }
}

TEST(Config, LeastFileTakesEveryDefault) {
  const Config config = parse_config("ports: [{ name: p0, device: net_null0 }]", "f.yaml");
  EXPECT_TRUE(config.eal_options.empty());
  ASSERT_EQ(config.ports.size(), 1U);
  EXPECT_TRUE(config.ports[0].macs.empty());
  EXPECT_EQ(config.ports[0].rx_queues, 1);
  EXPECT_EQ(config.ports[0].rx_steering, RxSteering::rss);
  EXPECT_EQ(config.ports[0].mtu, 1500);
  EXPECT_EQ(config.ports[0].rx_descriptors, 1024);
  EXPECT_EQ(config.ports[0].tx_descriptors, 1024);
  ASSERT_EQ(config.lcores.size(), 2U);
  EXPECT_EQ(config.lcores[0].id, 0U);
  EXPECT_EQ(config.lcores[0].roles, std::vector{Role::control});
  EXPECT_EQ(config.lcores[1].id, 1U);
  EXPECT_EQ(config.lcores[1].roles, (std::vector{Role::rx, Role::worker, Role::tx}));
  EXPECT_EQ(config.lcores[1].idle, Idle::spin);
  EXPECT_EQ(config.lcores_by, LcoresBy::the_switch);
  EXPECT_EQ(config.lcores[1].line, 1) << "an error about them has a place in the file";
  EXPECT_EQ(config.l2.aging_s, 300U);
  EXPECT_EQ(config.l2.entries, 8192U);
  EXPECT_EQ(config.connections.plain_entries, 4096U);
  EXPECT_EQ(config.connections.aging_s, 600U);
  EXPECT_TRUE(config.rings.empty());
  EXPECT_EQ(config.ports[0].bridge, YesNo::yes);
  EXPECT_EQ(config.l2.loop_detection, YesNo::yes);
  EXPECT_TRUE(config.stations.empty());
}

/// A file with one port and these rings.
std::vector<std::uint32_t> ids_with(const std::string& rings) {
  std::vector<std::uint32_t> ids;
  for (const ring::RingSpec& ring :
       parse_config("ports: [{ name: p0, device: net_null0 }]\nrings:\n" + rings, "c.yaml").rings) {
    EXPECT_EQ(ring.members.size(), 2U);
    ids.push_back(ring.id);
  }
  return ids;
}

TEST(Config, ParallelRingsHaveTheIdsThatFollow) {
  const std::string rest =
      "window: 1, max_message_bytes: 64, members: [{ ip: 10.0.0.1 }, { ip: 10.0.0.2 }] }\n";
  EXPECT_EQ(ids_with("  - { id: 5, parallel: 3, " + rest + "  - { id: 9, " + rest),
            (std::vector<std::uint32_t>{5, 6, 7, 9}));
  EXPECT_EQ(ids_with("  - { id: 5, parallel: 1, " + rest), std::vector<std::uint32_t>{5});
  EXPECT_THROW(ids_with("  - { id: 6, " + rest + "  - { id: 5, parallel: 3, " + rest), ConfigError);
  EXPECT_THROW(ids_with("  - { id: 0xffffffff, parallel: 2, " + rest), ConfigError);
  EXPECT_THROW(ids_with("  - { id: 5, parallel: 0, " + rest), ConfigError);
}

TEST(Config, InterfaceExample) {
  // The example on which the interface was agreed.
  const Config config = parse_config(R"(eal:
  options: ["--no-huge", "-m", "512", "--no-pci"]   # passed as they are; the command line's come after
ports:
  - { name: p0, device: "net_af_packet0,iface=tap0", macs: ["52:54:00:00:00:01"] }   # macs only for weir-replay
  - { name: p1, device: "0000:3b:00.0", rx_queues: 1 }                               # a PCI address for a NIC
lcores:                        # which core plays which parts; one core may play all
  - { id: 0, roles: [control] }
  - { id: 1, roles: [rx, worker, tx] }
l2: { aging_s: 300 }
rings:
  - id: 7
    window: 4                  # N, messages
    max_message_bytes: 16384   # 40-byte header included; L follows from it and mtu
    mtu: 1024                  # path MTU of the job
    members:                   # in rank order
      - { ip: 10.77.0.1 }
      - { ip: 10.77.0.2, port: p1 }
)",
                                     "f.yaml");
  EXPECT_EQ(config.eal_options, (std::vector<std::string>{"--no-huge", "-m", "512", "--no-pci"}));
  ASSERT_EQ(config.ports.size(), 2U);
  EXPECT_EQ(config.ports[0].device, "net_af_packet0,iface=tap0");
  ASSERT_EQ(config.rings.size(), 1U);
  EXPECT_EQ(config.rings[0].id, 7U);
  EXPECT_EQ(config.rings[0].packets_per_message(), 16U);
  EXPECT_EQ(config.rings[0].members[0].port, std::nullopt);
  EXPECT_EQ(config.rings[0].members[1].port, 1);
}

struct GoodFile {
  std::string_view what;
  std::string yaml;
};

std::string with_carriage_returns(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c == '\n' ? std::string("\r\n") : std::string(1, c);
  }
  return out;
}

TEST(Config, GoodFiles) {
  const std::vector<GoodFile> rows = {
      {"CRLF line ends", with_carriage_returns(kGood)},
      {"a byte order mark", "\xef\xbb\xbf" + std::string(kGood)},
      {"document marks", "---\n" + std::string(kGood) + "...\n"},
      {"no line end at the end", std::string(kGood.substr(0, kGood.size() - 1))},
      {"a quoted number", with("window: 4", "window: \"4\"")},
      {"hexadecimal", with("window: 4", "window: 0X3fF")},
      {"empty maps and lists",
       "eal: {}\nports: [{ name: p0, device: d0, macs: [] }]\nl2: {}\nconnections: {}\nrings: "
       "[]\n"},
      {"rings before the ports they name",
       "rings:\n- { id: 0, window: 1, max_message_bytes: 40, members: [{ ip: "
       "10.0.0.1, port: z }, { ip: 10.0.0.2 }] }\nports: [{ name: z, device: d }]\n"},
      {"one lcore for everything", "ports: [{ name: p0, device: d0 }]\nlcores: [{ id: 0, roles: "
                                   "[tx, worker, rx, control] }]\n"},
      {"no control lcore",
       "ports: [{ name: p0, device: d0 }]\nlcores: [{ id: 1023, roles: [rx, worker, tx] }]\n"},
      {"two lcores in one role", with("[tx]", "[tx, rx]")},
      {"one address in two rings",
       "ports: [{ name: p0, device: d0 }]\nrings:\n"
       "- { id: 1, window: 1, max_message_bytes: 40, members: &m [{ ip: 10.0.0.1 }, { ip: "
       "10.0.0.2 }] }\n- { id: 2, window: 1, max_message_bytes: 40, members: *m }\n"},
      {"one address and port in two rings",
       "ports: [{ name: p0, device: d0 }, { name: p1, device: d1 }]\nrings:\n"
       "- { id: 1, window: 1, max_message_bytes: 40, members: [{ ip: 10.0.0.1, port: p1 }, { ip: "
       "10.0.0.2 }] }\n- { id: 2, window: 1, max_message_bytes: 40, members: [{ ip: 10.0.0.1, "
       "port: p1 }, { ip: 10.0.0.3 }] }\n"},
      {"link-local addresses", with("fd00::3", "fe80::3")},
      {"the longest history: 2 * 4 * 524288 = 2^22 packets",
       with("max_message_bytes: 16384", "max_message_bytes: 268435456")},
  };
  for (const GoodFile& row : rows) {
    EXPECT_EQ(error_of(row.yaml), std::nullopt) << row.what;
  }
}

TEST(Config, PortMtuThatJustFits) {
  const auto fits = [](int port_mtu, int path_mtu, const std::string& net) {
    return !error_of(
        "ports: [{ name: p0, device: d0, mtu: " + std::to_string(port_mtu) +
        " }]\nrings: [{ id: 1, window: 1, max_message_bytes: 40, mtu: " + std::to_string(path_mtu) +
        ", members: [{ ip: " + net + "1 }, { ip: " + net + "2 }] }]\n");
  };
  EXPECT_TRUE(fits(4096 + 64, 4096, "10.0.0."));
  EXPECT_FALSE(fits(4096 + 63, 4096, "10.0.0."));
  EXPECT_TRUE(fits(4096 + 84, 4096, "fd00::"));
  EXPECT_FALSE(fits(4096 + 83, 4096, "fd00::"));
  EXPECT_TRUE(fits(1280, 1024, "fd00::"));
}

TEST(Config, NamesRoles) {
  EXPECT_EQ(name_of(Role::control), "control");
  EXPECT_EQ(name_of(Role::rx), "rx");
  EXPECT_EQ(name_of(Role::worker), "worker");
  EXPECT_EQ(name_of(Role::tx), "tx");
}

/// Any text gives a Config, or one line of error in the promised form that names a line of the
/// text.
void expect_config_or_error(const std::string& yaml) {
  constexpr std::string_view file = "f.yaml:";
  const std::optional<std::string> error = error_of(yaml);
  if (!error) {
    return;
  }
  const std::size_t found = error->find(": found ");
  const std::size_t allowed = error->find("; allowed: ");
  ASSERT_TRUE(error->starts_with(file) && found != std::string::npos && allowed > found &&
              allowed != std::string::npos && error->find('\n') == std::string::npos)
      << *error << "\n"
      << yaml;
  char* end = nullptr;
  const long line = std::strtol(error->c_str() + file.size(), &end, 10);
  EXPECT_TRUE(std::string_view(end).starts_with(": ")) << *error << "\n" << yaml;
  EXPECT_GE(line, 1) << *error << "\n" << yaml;
  EXPECT_LE(line, std::count(yaml.begin(), yaml.end(), '\n') + 1) << *error << "\n" << yaml;
}

TEST(ConfigFuzz, TruncatedAtEveryByte) {
  for (std::size_t size = 0; size <= kGood.size(); ++size) {
    expect_config_or_error(std::string(kGood.substr(0, size)));
  }
}

TEST(ConfigFuzz, EveryByteReplaced) {
  constexpr std::string_view kReplacements = "\n :,[}\"-";
  constexpr std::size_t kTried =
      test::rounds(kReplacements.size()); // another part of them at each byte
  for (std::size_t at = 0; at < kGood.size(); ++at) {
    for (std::size_t i = 0; i < kTried; ++i) {
      std::string yaml(kGood);
      yaml[at] = kReplacements[(at * kTried + i) % kReplacements.size()];
      expect_config_or_error(yaml);
    }
  }
}

TEST(ConfigFuzz, EveryLineLeftOut) {
  const int lines = static_cast<int>(std::count(kGood.begin(), kGood.end(), '\n'));
  for (int first = 1; first <= lines; ++first) {
    for (int last = first; last <= lines; ++last) {
      expect_config_or_error(without_lines(first, last));
    }
  }
}

class ConfigFiles : public testing::Test {
 protected:
  std::string error_of_file(const std::filesystem::path& file) {
    try {
      load_config(file);
      return "no error";
    } catch (const ConfigError& error) {
      return error.what();
    }
  }

  std::filesystem::path write(const std::string& name, std::string_view text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  const test::TemporaryFolder temporary_{"weir-config"};
  const std::filesystem::path folder_ = temporary_.path();
};

TEST_F(ConfigFiles, Good) {
  EXPECT_EQ(load_config(write("good.yaml", kGood)).ports.size(), 2U);
}

TEST_F(ConfigFiles, BadNamesTheFile) {
  const auto file = write("bad.yaml", with("window: 4", "window: 0"));
  EXPECT_EQ(error_of_file(file),
            file.string() + ":20: rings[0].window: found 0; allowed: a whole number, 1 to 1024");
}

TEST_F(ConfigFiles, Missing) {
  const auto file = folder_ / "missing.yaml";
  EXPECT_EQ(error_of_file(file),
            file.string() + ":1: (document): found no such file; allowed: a readable YAML file of "
                            "at most 16 MiB");
}

TEST_F(ConfigFiles, Folder) {
  EXPECT_EQ(error_of_file(folder_),
            folder_.string() + ":1: (document): found a directory; allowed: a readable YAML file "
                               "of at most 16 MiB");
}

TEST_F(ConfigFiles, Endless) {
  EXPECT_EQ(error_of_file("/dev/zero"),
            "/dev/zero:1: (document): found more than 16 MiB; allowed: a readable YAML file "
            "of at most 16 MiB");
}

/// Nobody writes into it.
TEST_F(ConfigFiles, Pipe) {
  const auto file = folder_ / "pipe.yaml";
  ASSERT_EQ(mkfifo(file.c_str(), S_IRWXU), 0);
  EXPECT_EQ(error_of_file(file),
            file.string() + ":1: (document): found a pipe or device from which nothing has come "
                            "for 5 s; allowed: a readable YAML file of at most 16 MiB");
}

/// As a shell makes it of <(…).
TEST_F(ConfigFiles, APipeWithAWriter) {
  const auto file = folder_ / "pipe.yaml";
  ASSERT_EQ(mkfifo(file.c_str(), S_IRWXU), 0);
  std::jthread writer([&file] { std::ofstream(file) << kGood; });
  EXPECT_EQ(load_config(file).ports.size(), 2U);
}

TEST_F(ConfigFiles, Empty) {
  const auto file = write("empty.yaml", "");
  EXPECT_EQ(error_of_file(file),
            file.string() + ":1: (document): found an empty file; allowed: one YAML document");
}

std::filesystem::path ready_folder() {
  return std::filesystem::path(WEIR_SOURCE_ROOT) / "config";
}

TEST(ReadyConfigurations, AllLoad) {
  std::set<std::string> loaded;
  for (const auto& entry : std::filesystem::directory_iterator(ready_folder())) {
    if (entry.path().extension() == ".yaml") {
      EXPECT_NO_THROW(load_config(entry.path())) << entry.path();
      loaded.insert(entry.path().stem());
    }
  }
  for (const char* name :
       {"demo", "pcap", "af_packet", "af_xdp", "tap", "vhost", "lab-mlx5", "lab-ice"}) {
    EXPECT_TRUE(loaded.contains(name)) << name;
  }
}

/// 128 rings of 256: one member more than the switch has numbers for.
TEST(Config, SaysWhichRingHasOneMemberTooMany) {
  std::string members;
  for (unsigned member = 0; member < 256; ++member) {
    members += fmt::format("{}{{ip: 10.0.{}.1}}", member == 0 ? "" : ", ", member);
  }
  const std::string_view good(kGood);
  std::string text(good.substr(0, good.find("rings:")));
  text += "rings:\n";
  const auto first = 1 + std::count(text.begin(), text.end(), '\n');
  for (unsigned ring = 0; ring < 128; ++ring) {
    text += fmt::format("  - {{id: {}, window: 1, max_message_bytes: 1024, members: [{}]}}\n", ring,
                        members);
  }
  const std::string line = fmt::format("{}: rings[127].members: ", first + 127);
  try {
    parse_config(text, "file");
    ADD_FAILURE() << "it was taken";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string_view(error.what())
                  .find(line + "found 256, the 32768th in all rings; "
                               "allowed: at most 32767"),
              std::string_view::npos)
        << error.what();
  }
}

/// Where an entry without a value stands is looked up in the text. That takes no longer in a long
/// text.
TEST(Config, ManyEntriesWithoutAValue) {
  std::string text = "ports: [{ name: p0, device: net_null0 }]\nstations:\n";
  for (unsigned i = 0; i < 65536; ++i) {
    text += "  -\n";
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(parse_config(text, "f.yaml"), ConfigError);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(ReadyConfigurations, LabWindowsFillTheLink) {
  // NetReduce §3.2: N * MsgLen >= RTT * PortRate, with 100 us and 100 Gb/s.
  constexpr std::uint64_t bytes_in_flight = 12'500'000'000ULL * 100 / 1'000'000;
  for (const char* name : {"lab-mlx5.yaml", "lab-ice.yaml"}) {
    const Config config = load_config(ready_folder() / name);
    EXPECT_EQ(config.ports.size(), 4U) << name;
    ASSERT_EQ(config.rings.size(), 1U) << name;
    const ring::RingSpec& ring = config.rings[0];
    EXPECT_GE(std::uint64_t{ring.window} * ring.max_message_bytes, bytes_in_flight) << name;
    EXPECT_TRUE(std::ranges::all_of(ring.members, [](const auto& m) { return m.port.has_value(); }))
        << name;
  }
}

} // namespace
} // namespace weir::config::config_test
