// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "report/report.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weir::control {
class Switch;
struct Principal;
} // namespace weir::control

namespace weir::report {

/// An unknown name. what() has what was found and what is allowed.
class UnknownName : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Stands for every port or every ring.
inline constexpr std::string_view kAll = "all";

std::vector<std::string> port_names(const control::Switch& weir);
std::vector<std::string> ring_ids(const control::Switch& weir);

/// The id in words, of a ring that there is. Throws UnknownName.
std::uint32_t ring_id(const control::Switch& weir, std::string_view name);
/// The index of the port with this name. Throws UnknownName, also for kAll.
std::uint16_t port_named(const control::Switch& weir, std::string_view name);

// The answers to the questions (report/questions.hpp), and the prompt's actions on ports and rings.
// A `port` is a name or kAll; a `ring` is an id or, for show_rings, kAll. Each throws UnknownName.

Report show_port_information(control::Switch& weir, std::string_view port);
Report show_port_bridge(control::Switch& weir, std::string_view name);
Report show_port_steering(control::Switch& weir, std::string_view port);
Report show_port_statistics(control::Switch& weir, std::string_view port);
Report show_port_extended(control::Switch& weir, std::string_view port);
void clear_port_statistics(control::Switch& weir, std::string_view port);
Report show_rings(control::Switch& weir, std::string_view ring);
Report show_hellos(control::Switch& weir);
Report show_stuck(control::Switch& weir, std::string_view ring);
/// These two throw control::NotAllowed too.
void reset_ring(control::Switch& weir, std::string_view ring, const control::Principal& principal);
void withdraw_ring(control::Switch& weir, std::string_view ring,
                   const control::Principal& principal);
/// Adds the rings of a file as `rings` has them in a configuration, in order, and returns their
/// ids. Throws config::ConfigError before the first is added; control::RingRefused and
/// control::JournalError for a ring, when those before it are added.
std::vector<std::uint32_t> add_rings(control::Switch& weir, std::string_view file);
/// The changes of the configuration file, applied as far as that is possible while the switch runs.
/// Throws as control::Reload::apply().
Report reload(control::Switch& weir);
/// The same, but nothing changes.
Report rehearse_reload(control::Switch& weir);
Report show_drops(control::Switch& weir);
/// The stages in the order of stage::kGraph, with the count of each of their drop reasons.
Report show_graph(control::Switch& weir);
Report show_accounting(control::Switch& weir);
Report show_stations(control::Switch& weir);
Report show_lcores(control::Switch& weir);
Report show_memory(control::Switch& weir);
Report show_trace(control::Switch& weir);
/// Of the regions' rooms, a tenant sees its own share.
Report show_tenants(control::Switch& weir, std::string_view, const control::Principal& principal);
/// The ids of regions that are not forgotten. A tenant has its own.
std::vector<std::string> region_ids(const control::Switch& weir,
                                    const control::Principal& principal);
/// One region or all, with their members. A tenant sees its own, and for it the others are unknown.
/// Throws UnknownName.
Report show_regions(control::Switch& weir, std::string_view name,
                    const control::Principal& principal);
void withdraw_region(control::Switch& weir, std::string_view name,
                     const control::Principal& principal);
/// The processes of the control service's gate that did not end by themselves.
Report show_gate(control::Switch& weir);
/// The rings that were reclaimed last, and how many for each reason.
Report show_reclaimed(control::Switch& weir);
/// The last capture. No row: there was none.
Report show_capture(control::Switch& weir);

} // namespace weir::report
