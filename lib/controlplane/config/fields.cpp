// SPDX-License-Identifier: BSD-3-Clause
#include "config/fields.hpp"

#include "config/checks.hpp"
#include "config/lists.hpp"
#include "config/rows.hpp"
#include "program/operator.hpp"
#include "ring/ring_set.hpp"
#include "ring/ring_spec.hpp"
#include "weir/ina.hpp"
#include "weir/limits.hpp"

#include <fmt/format.h>

namespace weir::config {
namespace {

constexpr std::uint64_t kMostRings = 4096;
constexpr std::uint64_t kMostParallel = 64;
constexpr std::uint64_t kMostRegions = 1024;
constexpr std::uint64_t kMostRegionFrames = 1U << 26;
constexpr std::uint64_t kMostRegionEntries = 1U << 22;
constexpr std::string_view kPartOfRooms = "the same part of regions.rooms as of the regions";
constexpr std::uint64_t kMostStations = 65536; // a 16th of the most entries
constexpr std::string_view kFileForm = "the path of a PEM file";
constexpr Text kPersonForm{"a name of at most 64 letters, digits, '_', '.', '@' and '-'",
                           is_certificate_name};

const Fields<Config>& eal_fields() {
  static const List options{{0, 256}, "EAL options", Text{"an EAL option"}};
  static const Fields<Config> fields{
      key<&Config::eal_options>("options", options, "passed to EAL unchanged", Effect::restart,
                                otherwise("none"))
          .with_check([](const yaml::Reader& node, const Config&) {
            if (node.is_present()) {
              check_eal_options(items_at(node, options));
            }
          }),
  };
  return fields;
}

const Fields<L2Config>& l2_fields() {
  static const Fields<L2Config> fields{
      key<&L2Config::aging_s>("aging_s", WholeNumber{{1, 1'000'000}},
                              "seconds until a silent station is forgotten", Effect::in_place),
      key<&L2Config::entries>("entries", PowerOfTwo{{16, 1U << 20}}, "most stations",
                              Effect::restart),
      key<&L2Config::loop_detection>(
          "loop_detection", OneWordOf{kYesNo},
          "whether the switch sends a probe by each port with bridge: yes once a second, to find "
          "loops",
          Effect::in_place),
  };
  return fields;
}

const Fields<ConnectionsConfig>& connections_fields() {
  static const Fields<ConnectionsConfig> fields{
      key<&ConnectionsConfig::plain_entries>("plain_entries", WholeNumber{{1, 1U << 20}},
                                             "most plain queue pairs between ring neighbours",
                                             Effect::restart),
      key<&ConnectionsConfig::aging_s>("aging_s", WholeNumber{{1, 1'000'000}},
                                       "seconds until a silent plain queue pair is forgotten",
                                       Effect::in_place),
  };
  return fields;
}

const Fields<MetricsConfig>& metrics_fields() {
  static const Fields<MetricsConfig> fields{
      key<&MetricsConfig::listen>(
          "listen", Text{"ADDRESS:PORT, such as 127.0.0.1:9464 or [::1]:9464", can_be_listened_at},
          "where Prometheus finds /metrics", Effect::restart, kNeeded),
  };
  return fields;
}

const Fields<gate::TlsFiles>& tls_fields() {
  static const Fields<gate::TlsFiles> fields{
      key<&gate::TlsFiles::certificate>("certificate", Text{kFileForm},
                                        "the switch's certificate and its chain", Effect::restart,
                                        kNeeded),
      key<&gate::TlsFiles::key>("key", Text{kFileForm}, "its key", Effect::restart, kNeeded),
      key<&gate::TlsFiles::client_authority>("client_authority", Text{kFileForm},
                                             "who signs clients' certificates", Effect::restart,
                                             kNeeded),
  };
  return fields;
}

/// The structure has the addresses of either kind apart.
Field<ControlConfig> listen_field() {
  static constexpr Text form{"unix:/PATH of at most 107 bytes, or ADDRESS:PORT, such as "
                             "192.0.2.1:9465 or [2001:db8::1]:9465"};
  static const List list{{0, 8}, "addresses", form};
  return key_by<ControlConfig>(
             "listen", list, "where the control service listens", Effect::restart, "",
             [](const yaml::Reader& node, ControlConfig& control) {
               control.is_default = false;
               for (const yaml::Reader& item : items_at(node, list)) {
                 add_address(item, form, control);
               }
             },
             [](const ControlConfig& control, const Config&) { return addresses_of(control); })
      .with_check([](const yaml::Reader& node, const ControlConfig& control) {
        check_addresses(items_at(node, list), control);
      });
}

const List kOperators{{0, 64}, "names", kPersonForm};

const Fields<ControlConfig>& control_fields() {
  static const Fields<ControlConfig> fields{
      listen_field(),
      map<&ControlConfig::tls>("tls", tls_fields(), "no ADDRESS:PORT in control.listen")
          .with_check(check_tls),
      key<&ControlConfig::operators>("operators", kOperators,
                                     "common names of the certificates that may do all",
                                     Effect::restart, otherwise("any, unless there are tenants"))
          .with_check(check_use_of_operators),
      key<&ControlConfig::fabric>("fabric", kPersonForm,
                                  "the fabric whose manager may make rings here", Effect::restart,
                                  otherwise("none")),
      key<&ControlConfig::managers>("managers", kOperators,
                                    "common names of the certificates of that fabric's managers",
                                    Effect::restart, otherwise("none")),
  };
  return fields;
}

const Fields<SpareConfig>& spare_fields() {
  static const Fields<SpareConfig> fields{
      key<&SpareConfig::rings>("rings", WholeNumber{{0, kMostRings}},
                               "most rings made while the switch runs", Effect::restart, kNeeded),
      key<&SpareConfig::members>("members", WholeNumber{{0, ring::RingSet::kMostMembers}},
                                 "members of all such rings together", Effect::restart, kNeeded),
      key<&SpareConfig::frames>("frames", WholeNumber{{0, 1U << 26}},
                                "frames that the slots of all such rings can hold", Effect::restart,
                                kNeeded),
      key<&SpareConfig::ports>("ports", WholeNumber{{0, kMostPorts}},
                               "most ports more that a reload may open", Effect::restart),
  };
  return fields;
}

const Fields<RegionRooms>& region_room_fields() {
  static const Fields<RegionRooms> fields{
      key<&RegionRooms::regions>("regions", WholeNumber{{1, kMostRegions}}, "most regions at once",
                                 Effect::restart, kNeeded),
      key<&RegionRooms::members>("members", WholeNumber{{2, ring::RingSet::kMostMembers}},
                                 "members of all regions together", Effect::restart, kNeeded),
      key<&RegionRooms::frames>(
          "frames", WholeNumber{{4, kMostRegionFrames}},
          "frames that all regions together can hold: each takes its members times its window, and "
          "times its entries where it has views",
          Effect::restart, kNeeded),
      key<&RegionRooms::entries>(
          "entries", WholeNumber{{0, kMostRegionEntries}},
          "packets of READs that all regions together can gather at a time; with 0 none has views",
          Effect::restart),
  };
  return fields;
}

const Fields<RegionsConfig>& regions_fields() {
  static const Fields<RegionsConfig> fields{
      key<&RegionsConfig::address>("address", Text{"a unicast IPv4 or IPv6 address"},
                                   "under which the switch is the peer of regions' members",
                                   Effect::restart, kNeeded),
      key<&RegionsConfig::mac>("mac", Text{"a unicast MAC address as 52:54:00:00:00:01"},
                               "the MAC address of that address, which no station has",
                               Effect::restart, kNeeded),
      map<&RegionsConfig::rooms>("rooms", region_room_fields(), "").with_check(check_rooms),
  };
  return fields;
}

constexpr Text kSwitchForm{"a name of at most 64 letters, digits, '_', '.' and '-'",
                           is_switch_name};

std::string name_of_port(const Config& config, std::uint16_t place) {
  return config.ports[place].name;
}

/// The reader of rings knows the ports.
const Fields<ring::Parent>& parent_fields() {
  static const Fields<ring::Parent> fields{
      key<&ring::Parent::name>("switch", kSwitchForm, "the switch above, by a name for people",
                               Effect::in_place, kNeeded),
      key_by<ring::Parent>("port", Text{"a port's name"}, "the only port that leads to it",
                           Effect::ring_made_anew, "", {},
                           [](const ring::Parent& parent, const Config& config) {
                             return name_of_port(config, parent.port);
                           }),
  };
  return fields;
}

const List kRanks{{2, 2}, "ranks, [FIRST, LAST]", WholeNumber{{0, kMaxWorld - 1}}};

ring::RankRange read_ranks(const yaml::Reader& node) {
  const std::vector<yaml::Reader> ends = items_at(node, kRanks);
  const auto rank_at = [](const yaml::Reader& end) {
    return static_cast<std::uint16_t>(number_at(end, std::get<WholeNumber>(kRanks.entry)));
  };
  const std::uint16_t first = rank_at(ends.front());
  const std::uint16_t last = rank_at(ends.back());
  if (last < first) {
    node.fail(fmt::format("[{}, {}]", first, last),
              fmt::format("the first rank first, as [{}, {}]", last, first));
  }
  return {first, static_cast<std::uint16_t>(last - first + 1u)};
}

/// Operators are compared with the tenants, which are read later.
void check_control(const yaml::Reader& node, const Config& config) {
  if (config.control.operators) {
    check_names_of_operators(items_at(node.at("operators"), kOperators), config);
  }
}

} // namespace

const Fields<PortConfig>& port_fields() {
  static const Fields<PortConfig> fields{
      naming_key<&PortConfig::name>(
          "name",
          Text{"a name of letters, digits, '_', '.' and '-', but not all or json", is_port_name},
          "name at the prompt"),
      key<&PortConfig::device>(
          "device", Text{R"(a vdev as "net_tap0,iface=x" or a PCI address as "0000:3b:00.0")"},
          "DPDK devargs: a PCI address or a virtual device", Effect::restart, kNeeded)
          .with_check(check_device),
      // The switch does not read them.
      key<&PortConfig::macs>(
          "macs",
          List{{0, 4096}, "MAC addresses", Text{"a unicast MAC address as 52:54:00:00:00:01"}},
          "stations behind this port; only weir-replay reads it", Effect::in_place,
          otherwise("none")),
      key<&PortConfig::rx_queues>("rx_queues", WholeNumber{{1, 16}},
                                  "receive queues, spread over the rx lcores", Effect::restart),
      key<&PortConfig::rx_steering>(
          "rx_steering", OneWordOf{kRxSteeringNames},
          "who spreads frames over the receive queues: a hash, or rules that bring ring members' "
          "frames to their ring's worker",
          Effect::restart)
          .with_check(check_steering),
      key<&PortConfig::mtu>("mtu", WholeNumber{{1280, 9216}}, "bytes of Ethernet payload",
                            Effect::restart),
      key<&PortConfig::rx_descriptors>("rx_descriptors", PowerOfTwo{{64, 32768}},
                                       "receive descriptors of a queue", Effect::restart),
      key<&PortConfig::tx_descriptors>("tx_descriptors", PowerOfTwo{{64, 32768}},
                                       "transmit descriptors of a queue", Effect::restart),
      key<&PortConfig::outer_tag>(
          "outer_tag", OneWordOf{kOuterTagNames},
          "the outermost VLAN tag on the port's links, for af_packet, which does not report it",
          Effect::restart),
      key<&PortConfig::bridge>(
          "bridge", OneWordOf{kYesNo},
          "no: only packets between ring neighbours come and go, and no station is learnt",
          Effect::in_place),
  };
  return fields;
}

const Fields<LcoreConfig>& lcore_fields() {
  static const Fields<LcoreConfig> fields{
      naming_key<&LcoreConfig::id>("id", WholeNumber{{0, 1023}}, "CPU"),
      key<&LcoreConfig::roles>(
          "roles", List{{1, kRoleNames.size()}, "roles", OneWordOf{kRoleNames}},
          "what the lcore does; workers without a ring make reductions for the others",
          Effect::restart, kNeeded),
      key<&LcoreConfig::idle>("idle", OneWordOf{kIdleNames},
                              "what an idle lcore does; one that sleeps does so for 50 µs, or "
                              "200 µs once some 20 ms have brought no work",
                              Effect::restart),
  };
  return fields;
}

const Fields<StationConfig>& station_fields() {
  static const Fields<StationConfig> fields{
      naming_key<&StationConfig::mac>("mac", Text{"a unicast MAC address as 52:54:00:00:00:01"},
                                      "the station's address"),
      key<&StationConfig::port>(
          "port", Text{"the name of a port with bridge: yes"},
          "where it is: it neither ages nor moves, and frames with this source from another port "
          "are dropped",
          Effect::in_place, kNeeded),
  };
  return fields;
}

const Fields<TenantConfig>& tenant_fields() {
  static const Fields<TenantConfig> fields{
      naming_key<&TenantConfig::name>("name", kPersonForm,
                                      "the common name in the tenant's certificates"),
      key<&TenantConfig::rings>("rings", WholeNumber{{0, kMostRings}}, "most rings at once",
                                Effect::restart, otherwise("no limit")),
      key<&TenantConfig::memory_mib>("memory_mib", WholeNumber{{0, 1U << 20}},
                                     "MiB for the frames, slots and results of all its rings",
                                     Effect::restart, otherwise("no limit")),
      key<&TenantConfig::neighbours>(
          "neighbours", WholeNumber{{0, ring::RingSet::kMostMembers}},
          "most neighbours that the switch remembers of its rings, withdrawn ones included",
          Effect::restart, otherwise("an equal share")),
      key<&TenantConfig::packets_per_second>("packets_per_second", WholeNumber{{1, 1'000'000'000}},
                                             "ring frames of all its hosts in a second",
                                             Effect::restart, otherwise("no limit")),
      key<&TenantConfig::regions>("regions", WholeNumber{{0, kMostRegions}}, "most regions at once",
                                  Effect::restart, otherwise("none that it holds itself")),
      key<&TenantConfig::region_members>("region_members",
                                         WholeNumber{{0, ring::RingSet::kMostMembers}},
                                         "members of all its regions together", Effect::restart,
                                         otherwise(std::string(kPartOfRooms))),
      key<&TenantConfig::region_frames>("region_frames", WholeNumber{{0, kMostRegionFrames}},
                                        "frames that all its regions together can hold",
                                        Effect::restart, otherwise(std::string(kPartOfRooms))),
      key<&TenantConfig::operators>("operators", WholeNumber{{0, program::kMaxLoaded}},
                                    "most operators that it may load at once", Effect::restart,
                                    otherwise("16")),
      key<&TenantConfig::operator_price>(
          "operator_price", WholeNumber{{1, 1'000'000}},
          "most ns that one of them may take for a KiB and rank, as weir-operator price tells",
          Effect::restart, otherwise("four times a sum of f8")),
      key<&TenantConfig::hosts>(
          "hosts",
          List{{1, 64},
               "blocks",
               Text{"a block of addresses as 10.1.0.0/16 or 2001:db8::/32, without bits behind "
                    "the prefix"}},
          "where the members of its rings may have their addresses", Effect::restart,
          otherwise("anywhere")),
  };
  return fields;
}

const Fields<OperatorConfig>& operator_fields() {
  static const Fields<OperatorConfig> fields{
      naming_key<&OperatorConfig::file>("file", Text{"an absolute path", is_absolute_path},
                                        "where the operator's text is"),
      key<&OperatorConfig::tenants>("tenants", List{{1, 1024}, "tenants", kPersonForm},
                                    "whose rings may use it", Effect::restart, otherwise("all")),
  };
  return fields;
}

const Fields<ring::Member>& member_fields() {
  static const Fields<ring::Member> fields{
      key<&ring::Member::ip>("ip", Text{"a unicast IPv4 or IPv6 address"}, "the rank's address",
                             Effect::ring_made_anew, kNeeded),
      // Its reader knows the ports.
      key_by<ring::Member>(
          "port", Text{"a port's name"}, "the only port this member's packets may come from",
          Effect::in_place, "any port", {},
          [](const ring::Member& member, const Config& config) {
            return member.port ? name_of_port(config, *member.port) : std::string(kNothing);
          }),
  };
  return fields;
}

/// A change of ranks is one of the list.
const Fields<ring::Child>& child_fields() {
  static const Fields<ring::Child> fields{
      key_by<ring::Child>(
          "rank", WholeNumber{{0, kMaxWorld - 1}}, "a rank behind this switch",
          Effect::ring_made_anew, "the child is a switch",
          [](const yaml::Reader& node, ring::Child& child) {
            child.ranks = {static_cast<std::uint16_t>(node.whole_number({0, kMaxWorld - 1})), 1};
          },
          {})
          .without_leaves(),
      key_by<ring::Child>(
          "switch", kSwitchForm, "a switch below, by a name for people", Effect::in_place,
          "the child is a rank",
          [](const yaml::Reader& node, ring::Child& child) {
            child.kind = ring::ChildKind::switch_below;
            child.name = text_at(node, kSwitchForm);
          },
          [](const ring::Child& child, const Config&) { return in_words(Map{}, child.name); }),
      key_by<ring::Child>(
          "ranks", kRanks, "the first and the last rank that the switch below answers for",
          Effect::ring_made_anew, "the child is a rank",
          [](const yaml::Reader& node, ring::Child& child) { child.ranks = read_ranks(node); }, {})
          .without_leaves(),
      // Its reader knows the ports.
      key_by<ring::Child>(
          "port", Text{"a port's name"},
          "the only port that the child's packets may come from; a switch needs one of its own",
          Effect::in_place, "any port, for a rank", {},
          [](const ring::Child& child, const Config& config) {
            return child.port ? name_of_port(config, *child.port) : std::string(kNothing);
          }),
  };
  return fields;
}

const Fields<ring::RingSpec>& ring_fields() {
  static const Fields<ring::RingSpec> fields{
      naming_key<&ring::RingSpec::id>("id", WholeNumber{{0, 0xffff'ffff}},
                                      "the number in the INA header"),
      // Each of them is an entry of the list, once it is read.
      key<&ring::RingSpec::parallel>(
          "parallel", WholeNumber{{1, kMostParallel}},
          "so many rings with these members and the ids from `id` on, each for a worker",
          Effect::ring_made)
          .without_leaves(),
      key<&ring::RingSpec::window>("window", WholeNumber{{1, kMaxWindow}},
                                   "messages a rank may have under way", Effect::ring_made_anew,
                                   kNeeded),
      key<&ring::RingSpec::max_message_bytes>(
          "max_message_bytes", WholeNumber{{kInaHeaderBytes, kMaxMessageBytes}},
          "longest message, its 40-byte header included", Effect::ring_made_anew, kNeeded)
          .with_check(check_history),
      key<&ring::RingSpec::mtu>("mtu", OneNumberOf{kPathMtus}, "path MTU of the job's queue pairs",
                                Effect::ring_made_anew),
      seconds<&ring::RingSpec::patience_ms>(
          "patience", WholeNumber{{1, 86'400}},
          "seconds without a new packet of the ring after which the switch asks nobody and keeps "
          "nobody alive",
          Effect::in_place),
      key<&ring::RingSpec::keep_alive>(
          "keep_alive", OneWordOf{kKeepAliveNames},
          "how a rank that waits for a slower one is kept from giving up: by duplicate "
          "acknowledgements (ack), by RNR NAKs (rnr), not (off)",
          Effect::in_place),
      seconds<&ring::RingSpec::lease_ms>(
          "lease", WholeNumber{{1, 31'536'000}},
          "seconds without a packet of any member after which the ring is reclaimed; at least "
          "patience",
          Effect::in_place,
          otherwise(
              fmt::format("{}, or patience if that is longer", ring::RingSpec{}.lease_ms / 1000)))
          .with_check(check_lease),
      // Its reader knows the tenants.
      key_by<ring::RingSpec>(
          "tenant", Text{"a tenant's name"}, "whose ring it is", Effect::ring_made_anew, "nobody's",
          {},
          [](const ring::RingSpec& ring, const Config&) { return in_words(Map{}, ring.tenant); }),
      entries<ring::RingSpec>("members", List{{kMinWorld, kMaxWorld}, "members"},
                              "the ranks, rank 0 first", kNeeded, member_fields(), {}, {}),
      map<&ring::RingSpec::parent>("parent", parent_fields(), "this switch is the root"),
      entries<ring::RingSpec>("children", List{{1, kMaxWorld}, "children"},
                              "whose packets this switch adds, in ring order",
                              otherwise("each rank is one"), child_fields(), {}, {}),
  };
  return fields;
}

const Fields<Config>& config_fields() {
  static const Fields<Config> fields{
      map_of_same<Config>("eal", eal_fields(), "no options"),
      entries<Config>("ports", List{{1, kMostPorts}, "ports"}, "the links that the switch joins",
                      kNeeded, port_fields(), read_ports, compare_ports),
      entries<Config>("lcores", List{{1, 1024}, "lcores", {}, kLcoresByTheSwitch},
                      "the CPUs that the switch takes, and for what",
                      otherwise("auto: the switch chooses"), lcore_fields(), read_lcores,
                      compare_lcores),
      map<&Config::l2>("l2", l2_fields(), "its keys' defaults"),
      entries<Config>("stations", List{{0, kMostStations}, "stations"},
                      "stations that are tied to a port; at most a 16th of l2.entries",
                      otherwise("none"), station_fields(), read_stations, compare_stations)
          .taking(&Config::stations),
      map<&Config::connections>("connections", connections_fields(), "its keys' defaults"),
      map<&Config::metrics>("metrics", metrics_fields(), "no metrics"),
      map<&Config::control>("control", control_fields(),
                            "a Unix socket, control.sock in the run-time directory")
          .with_check(check_control),
      entries<Config>("tenants", List{{0, 1024}, "tenants"},
                      "who shares the switch, and what each may have of it", otherwise("none"),
                      tenant_fields(), read_tenants, compare_tenants),
      entries<Config>("operators", List{{0, program::kMaxLoaded}, "operators"},
                      "operators of the users' own that the switch has from its start",
                      otherwise("none"), operator_fields(), read_operators, compare_operators),
      map<&Config::spare>("spare", spare_fields(), "no room").with_check(check_spare),
      key<&Config::state_directory>(
          "state_directory", Text{"an absolute path such as /var/lib/weir", is_absolute_path},
          "where the switch remembers such rings", Effect::restart,
          otherwise("none: spare.rings must be 0"))
          .with_check(check_state_directory),
      key<&Config::drain_s>("drain_s", WholeNumber{{0, 3600}},
                            "most seconds for which a switch that is to stop waits for running "
                            "collectives and regions",
                            Effect::in_place),
      map<&Config::regions>("regions", regions_fields(), "no regions").with_check(check_regions),
      // They are read last, by read_rings(): a running switch may have other ports than the file.
      entries<Config>("rings", List{{0, kMostRings}, "rings"},
                      "the jobs whose tensors the switch adds", otherwise("none: a plain switch"),
                      ring_fields(), {}, compare_rings),
  };
  return fields;
}

} // namespace weir::config
