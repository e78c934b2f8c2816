// SPDX-License-Identifier: BSD-3-Clause
#include "config/port_places.hpp"

namespace weir::config {

PortPlaces::PortPlaces(const std::vector<PortConfig>& ports) {
  for (std::uint16_t place = 0; place < ports.size(); ++place) {
    if (ports[place].is_there()) {
      all_.push_back(place);
      names_.push_back(ports[place].name);
    }
  }
}

} // namespace weir::config
