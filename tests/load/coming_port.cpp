// SPDX-License-Identifier: BSD-3-Clause
#include "coming_port.hpp"

#include "often.hpp"

#include <fstream>
#include <string>
#include <string_view>

namespace weir::load {
namespace {

constexpr unsigned kTurns = often(8);
constexpr std::string_view kPortsKey = "ports:\n"; // how the configuration begins
constexpr std::string_view kPort = "  - { name: more, device: \"net_null9,no-rx=1\" }\n";
constexpr unsigned kStopsToOpen = 1;
constexpr unsigned kStopsToClose = 3;

} // namespace

ComingPort let_a_port_come_and_go(control::Switch& weir) {
  const std::string file = weir.inspector().config()->file;
  const std::string text = config::read_file(file);
  const std::uint64_t before = weir.inspector().stop_times().stops;
  ComingPort seen;
  for (unsigned turn = 0; turn < kTurns; ++turn) {
    std::ofstream(file) << kPortsKey << kPort << text.substr(kPortsKey.size());
    weir.reload().apply();
    std::ofstream(file) << text;
    weir.reload().apply();
    seen.reloads += 2;
    seen.stops_needed += kStopsToOpen + kStopsToClose;
  }
  seen.stops = weir.inspector().stop_times().stops - before;
  seen.is_gone = weir.reload().rehearse().empty() && weir.inspector().ports().back() == nullptr;
  return seen;
}

} // namespace weir::load
