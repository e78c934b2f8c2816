// SPDX-License-Identifier: BSD-3-Clause
#include "report/questions.hpp"

#include "control/inspector.hpp"
#include "control/switch.hpp"
#include "report/answers.hpp"
#include "report/switch_tables.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace weir::report {
namespace {

/// Adapts a function whose names all may know.
template <std::vector<std::string> (*names_of)(const control::Switch&)>
std::vector<std::string> names(const control::Switch& weir, const control::Principal&) {
  return names_of(weir);
}

template <std::vector<std::string> (*names_of)(const control::Switch&, const control::Principal&)>
std::vector<std::string> names_and_all(const control::Switch& weir,
                                       const control::Principal& principal) {
  std::vector<std::string> names = names_of(weir, principal);
  names.emplace_back(kAll);
  return names;
}

constexpr std::array kArguments{
    Argument{"<name|all>", "name", kAll, names_and_all<names<port_names>>},
    Argument{"<id|all>", "id", kAll, names_and_all<names<ring_ids>>},
    Argument{"<id>", "id", "", names<ring_ids>},
    Argument{"<region|all>", "region", kAll, names_and_all<region_ids>},
    Argument{"<region>", "region", "", region_ids},
};

/// Adapts a function that tells all the same.
template <Report (*show)(control::Switch&, std::string_view)>
Report for_all(control::Switch& weir, std::string_view argument, const control::Principal&) {
  return show(weir, argument);
}

/// Likewise, without an argument.
template <Report (*show)(control::Switch&)>
Report without_argument(control::Switch& weir, std::string_view, const control::Principal&) {
  return show(weir);
}

template <const auto&... shapes>
constexpr std::array<const TableShape*, sizeof...(shapes)> answer{&shapes...};

/// The answer that has what the inspector says there as rows of one table.
template <const auto& table, auto member>
Report rows_of(control::Switch& weir, std::string_view, const control::Principal&) {
  return {table.with_all((weir.inspector().*member)())};
}

constexpr auto& kAnswerOnRegions =
    answer<tables::kRegions, tables::kRegionMembers, tables::kRegionQueue, tables::kRegionEnds>;

constexpr std::array kQuestions{
    Question{"show port info <name|all>", "/weir/port/info", "devices, links, MTUs", Stops::none,
             answer<tables::kPortInfo>, for_all<show_port_information>},
    Question{"show port stats <name|all>", "/weir/port/stats", "packets and bytes", Stops::none,
             answer<tables::kPortStats>, for_all<show_port_statistics>},
    Question{"show port xstats <name|all>", "/weir/port/xstats", "the driver's own statistics",
             Stops::none, answer<tables::kPortXstats>, for_all<show_port_extended>},
    Question{"show port steering <name|all>", "/weir/port/steering",
             "whose frames come to the queue of their ring's worker", Stops::none,
             answer<tables::kPortSteering>, for_all<show_port_steering>},
    Question{"show port bridge <name|all>", "/weir/port/bridge",
             "whether ports bridge, and which are closed for a loop", Stops::none,
             answer<tables::kPortBridge>, for_all<show_port_bridge>},
    Question{"show ring <id|all>", "/weir/ring",
             "members, slots, results, drops, slot times of a ring, and its place in a tree",
             Stops::one,
             answer<tables::kRings, tables::kMembers, tables::kRecovery, tables::kRingDrops,
                    tables::kSlotTime, tables::kRingQueue, tables::kTree, tables::kRefusedHellos,
                    tables::kUplink, tables::kTotalTime>,
             for_all<show_rings>},
    Question{"show ring <id> stuck", "/weir/ring/stuck",
             "the oldest unfinished slots, the ranks they wait for, and what holds these up",
             Stops::one, answer<tables::kStuck, tables::kWaitedFor>, for_all<show_stuck>},
    Question{"show hellos", "/weir/hellos",
             "hellos of trees' rings that are refused here, those for rings that are not here too",
             Stops::one_at_most, answer<tables::kRefusedHellos>, without_argument<show_hellos>},
    Question{"show reclaimed", "/weir/reclaimed", "rings that the switch took back, and why",
             Stops::none, answer<tables::kReclaimed, tables::kReclaims>,
             without_argument<show_reclaimed>},
    Question{"show tenants", "/weir/tenants",
             "what tenants may have of the switch, and what they have", Stops::one,
             answer<tables::kTenants, tables::kTenantRegions>, show_tenants},
    Question{"show region <region|all>", "/weir/region",
             "regions and members: what is held, who owes an acknowledgement, why regions end",
             Stops::one_at_most, kAnswerOnRegions, show_regions},
    Question{"show gate", "/weir/gate",
             "processes of the control service's gate that did not end by themselves", Stops::none,
             answer<tables::kGate>, without_argument<show_gate>},
    Question{"show conn all", "/weir/conn", "queue pairs between ring neighbours",
             Stops::one_for_each_part, answer<tables::kConnections>,
             rows_of<tables::kConnections, &control::Inspector::connections>},
    Question{"show drops", "/weir/drops", "every drop reason that has counted", Stops::one,
             answer<tables::kDrops, tables::kForeign>, without_argument<show_drops>},
    Question{"show accounting", "/weir/accounting",
             "received + originated = forwarded + consumed + dropped + held + queued", Stops::one,
             answer<tables::kAccounting>, without_argument<show_accounting>},
    Question{"show graph", "/weir/graph", "the stages, where they hand frames on, what they drop",
             Stops::one, answer<tables::kGraph>, without_argument<show_graph>},
    Question{"show fdb", "/weir/fdb", "stations and their ports", Stops::none, answer<tables::kFdb>,
             without_argument<show_stations>},
    Question{"show lcores", "/weir/lcores", "roles, load and packets per burst", Stops::one,
             answer<tables::kLcores, tables::kRxBurst, tables::kStoodStill>,
             without_argument<show_lcores>},
    Question{"show memory", "/weir/memory", "the frame pool and the rings' memory", Stops::none,
             answer<tables::kMemory>, without_argument<show_memory>},
    Question{"show capture", "/weir/capture", "the last capture: what it takes, how far it is",
             Stops::none, answer<tables::kCapture>, without_argument<show_capture>},
    Question{"show trace", "/weir/trace", "what became of each frame since `set trace on`",
             Stops::one, answer<tables::kTrace>, without_argument<show_trace>},
};

constexpr const Argument* find_argument(std::string_view grammar) {
  for (const Argument& argument : kArguments) {
    if (grammar.find(argument.placeholder) != grammar.npos) {
      return &argument;
    }
  }
  return nullptr;
}

constexpr bool knows_its_argument(const Question& question) {
  const bool takes_one = question.grammar.find('<') != question.grammar.npos;
  return takes_one == (find_argument(question.grammar) != nullptr);
}

static_assert(std::all_of(kQuestions.begin(), kQuestions.end(), knows_its_argument));

} // namespace

const Argument* argument_in(std::string_view grammar) {
  return find_argument(grammar);
}

Report Question::ask(control::Switch& weir, std::string_view argument,
                     const control::Principal& principal) const {
  const Argument* taken = argument_in(grammar);
  Report report =
      answer(weir, argument.empty() && taken != nullptr ? taken->fallback : argument, principal);
  const bool is_as_declared =
      !report.empty() && report.size() <= tables.size() &&
      std::equal(report.begin(), report.end(), tables.begin(),
                 [](const Table& table, const TableShape* shape) { return table.shape == shape; });
  if (!is_as_declared) {
    throw std::logic_error(std::string(grammar) + " has other tables than its row says");
  }
  return report;
}

std::span<const Question> questions() {
  return kQuestions;
}

} // namespace weir::report
