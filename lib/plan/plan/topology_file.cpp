// SPDX-License-Identifier: BSD-3-Clause
#include "plan/topology_file.hpp"

#include "files/whole_file.hpp"
#include "plan/generators.hpp"
#include "plan/node_names.hpp"
#include "text/quantity.hpp"
#include "yaml/error.hpp"
#include "yaml/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <sstream>

namespace weir::plan {
namespace {

using yaml::Range;
using yaml::Reader;

constexpr Range kCount{1, kMostVertices};
constexpr std::size_t kLongestFile = std::size_t{16} << 20;

std::uint64_t read_rate(const Reader& reader) {
  const auto rate = text::parse_rate(reader.text(text::kRateForm));
  if (!rate || *rate == 0) {
    reader.fail(reader.found(), text::kRateForm);
  }
  return *rate;
}

std::uint64_t read_latency(const Reader& reader) {
  const auto latency = text::parse_latency(reader.text(text::kLatencyForm));
  if (!latency) {
    reader.fail(reader.found(), text::kLatencyForm);
  }
  return *latency;
}

LinkTraits read_traits(const Reader& map) {
  return {read_rate(map.at("rate")), read_latency(map.at("latency"))};
}

std::uint32_t read_count(const Reader& map, std::string_view key) {
  return static_cast<std::uint32_t>(map.at(key).whole_number(kCount));
}

/// One kind of generator: its keys besides kind, rate and latency, and what it makes.
struct Generator {
  std::string_view kind;
  std::vector<std::string_view> keys;
  std::function<Topology(const Reader&)> make;
};

Topology read_spine_leaf(const Reader& map) {
  const LinkTraits host = read_traits(map);
  LinkTraits uplink = host;
  if (map.at("uplink_rate").is_present()) {
    uplink.bits_per_second = read_rate(map.at("uplink_rate"));
  }
  if (map.at("uplink_latency").is_present()) {
    uplink.latency_ns = read_latency(map.at("uplink_latency"));
  }
  return make_spine_leaf({read_count(map, "leaves"), read_count(map, "nodes_per_leaf"),
                          read_count(map, "spines"), host, uplink});
}

const std::vector<Generator>& generators() {
  static const std::vector<Generator> table{
      {"torus",
       {"rows", "columns"},
       [](const Reader& map) {
         return make_torus(read_count(map, "rows"), read_count(map, "columns"), read_traits(map));
       }},
      {"mesh",
       {"rows", "columns"},
       [](const Reader& map) {
         return make_mesh(read_count(map, "rows"), read_count(map, "columns"), read_traits(map));
       }},
      {"fat-tree",
       {"leaves", "nodes_per_leaf"},
       [](const Reader& map) {
         return make_fat_tree(read_count(map, "leaves"), read_count(map, "nodes_per_leaf"),
                              read_traits(map));
       }},
      {"spine-leaf",
       {"leaves", "nodes_per_leaf", "spines", "uplink_rate", "uplink_latency"},
       read_spine_leaf},
      {"bigraph",
       {"nodes_per_switch", "switches"},
       [](const Reader& map) {
         const LinkTraits link = read_traits(map);
         return make_bigraph(read_count(map, "nodes_per_switch"), read_count(map, "switches"), link,
                             link);
       }},
      {"dgx2",
       {},
       [](const Reader& map) {
         const LinkTraits link = read_traits(map);
         return make_dgx2(link, link);
       }},
      {"star",
       {"nodes"},
       [](const Reader& map) { return make_star(read_count(map, "nodes"), read_traits(map)); }},
  };
  return table;
}

Topology read_generator(const Reader& map) {
  std::vector<std::string_view> kinds;
  std::vector<std::string_view> keys{"kind", "rate", "latency"};
  for (const Generator& generator : generators()) {
    kinds.push_back(generator.kind);
    keys.insert(keys.end(), generator.keys.begin(), generator.keys.end());
  }
  map.expect_map(keys); // keys of every kind, because `kind` is read after this
  const Generator& chosen = generators()[map.at("kind").one_of(kinds)];
  std::vector<std::string_view> known{"kind", "rate", "latency"};
  known.insert(known.end(), chosen.keys.begin(), chosen.keys.end());
  map.expect_map(known);
  try {
    return chosen.make(map);
  } catch (const PlanError& error) {
    map.fail(fmt::format("a {} that cannot be ({})", chosen.kind, error.what()),
             "one within these bounds");
  }
}

/// Names by pattern; each may appear once in the file. One that stands in a map has addresses
/// beside it: { name: host0, address: [10.0.0.1] }, { name: leaf0, control: "192.0.2.1:9465" }.
class NameList {
 public:
  std::vector<std::string> read(const Reader& list, Range count, std::string_view what,
                                std::string_view address_key) {
    std::vector<std::string> names;
    for (const Reader& entry : list.items(count, what)) {
      const Reader item = entry.is_map() ? name_in(entry, address_key) : entry;
      const std::string pattern = item.text("a name, or several as n[0-15]");
      const auto expanded = expand_names(pattern, kMostVertices);
      if (!expanded || line_of_.size() + expanded->size() > kMostVertices) {
        item.fail(item.found(),
                  fmt::format("a name, or several as n[0-15], at most {} in all", kMostVertices));
      }
      for (const std::string& name : *expanded) {
        const auto [first, is_new] = line_of_.emplace(name, item.line());
        if (!is_new) {
          item.fail(fmt::format("{} a second time (first on line {})", yaml::in_quotes(name),
                                first->second),
                    "each name once among nodes and switches");
        }
        names.push_back(name);
      }
      if (entry.is_map()) {
        read_addresses(entry, address_key, *expanded);
      }
    }
    return names;
  }

  void give_addresses(Topology& topology) const {
    for (const auto& [name, addresses] : addresses_of_) {
      topology.set_addresses(topology.find(name), addresses);
    }
  }

 private:
  static Reader name_in(const Reader& map, std::string_view address_key) {
    const std::array<std::string_view, 2> keys{"name", address_key};
    map.expect_map(keys);
    return map.at("name");
  }

  void read_addresses(const Reader& map, std::string_view key,
                      const std::vector<std::string>& names) {
    const Reader addresses = map.at(key);
    if (!addresses.is_present()) {
      return;
    }
    if (names.size() != 1) {
      addresses.fail(fmt::format("addresses of {} names", names.size()), "those of one name");
    }
    if (!addresses.is_list()) {
      addresses_of_[names.front()] = {addresses.text("an address")};
      return;
    }
    for (const Reader& address : addresses.items({1, 64}, "addresses")) {
      addresses_of_[names.front()].push_back(address.text("an address"));
    }
  }

  std::map<std::string, int> line_of_;
  std::map<std::string, std::vector<std::string>> addresses_of_;
};

/// Both ends of one entry of `links`.
class LinkReader {
 public:
  explicit LinkReader(Topology& topology) : topology_(topology) {
    for (VertexId vertex = 0; vertex < topology.vertex_count(); ++vertex) {
      names_.push_back(topology.name(vertex));
    }
  }

  void read(const Reader& link) {
    constexpr std::array<std::string_view, 5> keys{"between", "rate", "latency", "count", "ports"};
    link.expect_map(keys);
    const LinkTraits traits = read_traits(link);
    const auto ends = link.at("between").items({2, 2}, "names");
    const std::vector<VertexId> left = read_end(ends[0]);
    const std::vector<VertexId> right = read_end(ends[1]);
    const Reader count = link.at("count");
    const std::uint64_t cables = count.is_present() ? count.whole_number({1, 1024}) : 1;
    if (topology_.links().size() + 2 * cables * left.size() * right.size() >
        2 * std::size_t{kMostLinks}) {
      link.fail(fmt::format("more than {} links", kMostLinks), "fewer");
    }
    for (const VertexId a : left) {
      for (const VertexId b : right) {
        if (a == b) {
          link.fail(fmt::format("a link from {} to itself", topology_.name(a)),
                    "two different ends");
        }
        for (std::uint64_t cable = 0; cable < cables; ++cable) {
          topology_.connect(a, b, traits);
        }
      }
    }
    read_ports(link, cables * left.size() * right.size());
  }

 private:
  std::vector<VertexId> read_end(const Reader& end) const {
    constexpr std::string_view allowed = "a node or switch of this file, or several as n[0-15]";
    const auto names = expand_names(end.text(allowed), kMostVertices);
    if (!names) {
      end.fail(end.found(), allowed);
    }
    std::vector<VertexId> vertices;
    for (const std::string& name : *names) {
      const VertexId vertex = topology_.find(name);
      if (vertex == kNone) {
        end.fail(yaml::in_quotes(name),
                 fmt::format("{}{}", allowed, yaml::did_you_mean(name, names_)));
      }
      vertices.push_back(vertex);
    }
    return vertices;
  }

  void read_ports(const Reader& link, std::uint64_t cables) {
    const Reader ports = link.at("ports");
    if (!ports.is_present()) {
      return;
    }
    if (cables != 1) {
      ports.fail(fmt::format("port names for {} cables", cables), "port names for one cable");
    }
    const auto names = ports.items({2, 2}, "port names");
    const auto id = static_cast<LinkId>(topology_.links().size() - 2);
    topology_.set_port(id, names[0].text("a port's name"));
    topology_.set_port(Topology::reverse_of(id), names[1].text("a port's name"));
  }

  Topology& topology_;
  std::vector<std::string_view> names_;
};

Topology read_lists(const Reader& root) {
  NameList lists;
  std::vector<std::string> nodes = lists.read(root.at("nodes"), kCount, "nodes", "address");
  std::vector<std::string> switches;
  if (root.at("switches").is_present()) {
    switches = lists.read(root.at("switches"), {0, kMostVertices}, "switches", "control");
  }
  Topology topology(std::move(nodes), std::move(switches));
  lists.give_addresses(topology);
  LinkReader links(topology);
  for (const Reader& link : root.at("links").items({1, kMostLinks}, "links")) {
    links.read(link);
  }
  return topology;
}

std::string text_of(const std::filesystem::path& file) {
  const std::optional<std::string> text = files::read_whole(file);
  if (!text) {
    Reader::fail_file(file.string(), "no file that can be read", "a topology");
  }
  return *text;
}

} // namespace

Topology parse_topology(std::string_view yaml, std::string_view name) {
  if (yaml.size() > kLongestFile) {
    Reader::fail_file(name, fmt::format("{} bytes", yaml.size()),
                      fmt::format("at most {}", kLongestFile));
  }
  const Reader root = Reader::parse(yaml, name);
  constexpr std::array<std::string_view, 4> keys{"generator", "nodes", "switches", "links"};
  root.expect_map(keys);
  const bool is_generated = root.at("generator").is_present();
  if (is_generated && (root.at("nodes").is_present() || root.at("switches").is_present() ||
                       root.at("links").is_present())) {
    root.at("generator").fail("a generator beside nodes, switches or links", "one or the other");
  }
  Topology topology = is_generated ? read_generator(root.at("generator")) : read_lists(root);
  if (const VertexId cut_off = topology.find_cut_off(); cut_off != kNone) {
    Reader::fail_file(name,
                      fmt::format("no way from {} to {}", yaml::in_quotes(topology.name(0)),
                                  yaml::in_quotes(topology.name(cut_off))),
                      "links by which every node and switch reaches every other");
  }
  return topology;
}

Topology load_topology(const std::filesystem::path& file) {
  return parse_topology(text_of(file), file.string());
}

} // namespace weir::plan
