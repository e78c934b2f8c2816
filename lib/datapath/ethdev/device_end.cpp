// SPDX-License-Identifier: BSD-3-Clause
#include "ethdev/device_end.hpp"

#include "ethdev/drivers.hpp"
#include "ethdev/interrupt_thread.hpp"

#include <rte_ethdev.h>

#include <functional>

namespace weir::ethdev {
namespace {

void end_on_its_thread(std::uint16_t device, const std::function<void()>& end) {
  rte_eth_dev_info info{};
  const bool is_known = rte_eth_dev_info_get(device, &info) == 0;
  if (is_known && driver_of(info.driver_name).ends_on == EndsOn::interrupt_thread) {
    on_interrupt_thread(end);
  } else {
    end();
  }
}

} // namespace

void stop_device(std::uint16_t device) {
  end_on_its_thread(device, [device] { rte_eth_dev_stop(device); });
}

void stop_and_close_device(std::uint16_t device) {
  end_on_its_thread(device, [device] {
    rte_eth_dev_stop(device);
    rte_eth_dev_close(device);
  });
}

} // namespace weir::ethdev
