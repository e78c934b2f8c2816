// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A network as a graph: nodes that all-reduce, switches between them, directed links. It knows
/// nothing of algorithms, files or packets.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::plan {

/// Nodes are 0 … node_count()-1; switches follow.
using VertexId = std::uint32_t;
/// Index into Topology::links().
using LinkId = std::uint32_t;

inline constexpr std::uint32_t kNone = UINT32_MAX;

/// The cable of a link. Links come in pairs, one for each direction.
constexpr std::uint32_t cable_of(LinkId link) {
  return link / 2;
}

/// A topology or a request for which no plan can be made. what() has what is wrong and what would
/// be right.
class PlanError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct LinkTraits {
  std::uint64_t bits_per_second = 0;
  std::uint64_t latency_ns = 0; // from the last bit sent to the last bit received

  bool operator==(const LinkTraits&) const = default;
};

/// One direction of a cable; the other is reverse_of(its id). Parallel cables are several links.
struct Link {
  VertexId from = kNone;
  VertexId to = kNone;
  LinkTraits traits;
};

/// A grid of nodes, node row · columns + column (MultiTree §V: torus and mesh).
struct Grid {
  enum class Edges : std::uint8_t { open, wrapped }; // mesh, torus

  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  Edges edges = Edges::open;
};

/// EFLOPS' two-stage network (MultiTree §V): switches 0 … switches/2-1 are the upper side, the rest
/// the lower. Each upper one is linked to each lower. Node s · nodes_per_switch + j is on switch s.
struct BiGraph {
  std::uint32_t nodes_per_switch = 0;
  std::uint32_t switches = 0;
};

/// How unicast picks one of several shortest ways. The index is taken modulo their number.
enum class RouteRule : std::uint8_t {
  dimension_order,       // grids: along the row (X), then the column; equal ways: by parity
  by_destination,        // the destination's number
  by_source,             // the source's number
  by_destination_switch, // the number of the destination's switch among those of its side
};

class Topology {
 public:
  /// Names must differ. Errors: PlanError for a name used twice, or no node at all.
  Topology(std::vector<std::string> nodes, std::vector<std::string> switches);

  /// Adds a cable: a link each way. Returns the one from `a`. Errors: PlanError for a rate of 0, an
  /// end that does not exist, or both ends the same.
  LinkId connect(VertexId a, VertexId b, LinkTraits traits);
  /// Sets both directions of an existing cable. Errors: PlanError for a rate of 0.
  void set_traits(LinkId id, LinkTraits traits);
  /// Sets the order in which trees try the links that leave `vertex`: `order` is a permutation of
  /// them.
  void prefer(VertexId vertex, std::vector<LinkId> order);

  /// The name of the port by which `id` leaves; empty if none was given.
  void set_port(LinkId id, std::string name) { ports_[id] = std::move(name); }

  std::string port(LinkId id) const;

  /// Of a switch the address of its control service, of a node those that it has, one for each of
  /// its rails; none if the file has none.
  void set_addresses(VertexId vertex, std::vector<std::string> addresses) {
    addresses_[vertex] = std::move(addresses);
  }

  std::vector<std::string> addresses(VertexId vertex) const {
    const auto found = addresses_.find(vertex);
    return found == addresses_.end() ? std::vector<std::string>() : found->second;
  }

  static LinkId reverse_of(LinkId id) { return id ^ 1; }

  std::uint32_t node_count() const { return node_count_; }

  std::uint32_t switch_count() const { return vertex_count() - node_count_; }

  std::uint32_t vertex_count() const { return static_cast<std::uint32_t>(names_.size()); }

  bool is_node(VertexId vertex) const { return vertex < node_count_; }

  const std::string& name(VertexId vertex) const { return names_[vertex]; }

  /// kNone: no such vertex.
  VertexId find(std::string_view name) const;

  std::span<const Link> links() const { return links_; }

  const Link& link(LinkId id) const { return links_[id]; }

  /// In the order of adding, unless prefer() set another; in grids N, S, W, E.
  std::span<const LinkId> outgoing(VertexId vertex) const { return outgoing_[vertex]; }

  /// Every link joins two nodes: nodes pass on messages for others.
  bool is_direct() const { return switch_count() == 0; }

  /// Whether the vertex passes on messages for others: a switch does, a node only in a direct
  /// network.
  bool passes_on(VertexId vertex) const { return !is_node(vertex) || is_direct(); }

  /// A vertex that node 0 does not reach. kNone: all vertices reach each other.
  VertexId find_cut_off() const;

  std::optional<Grid> grid;
  std::optional<BiGraph> bigraph;
  RouteRule route_rule = RouteRule::by_destination;

 private:
  std::uint32_t node_count_;
  std::vector<std::string> names_;
  std::map<std::string, VertexId, std::less<>> by_name_;
  std::vector<Link> links_;
  std::map<LinkId, std::string> ports_;
  std::map<VertexId, std::vector<std::string>> addresses_;
  std::vector<std::vector<LinkId>> outgoing_;
};

} // namespace weir::plan
