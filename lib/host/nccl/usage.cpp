// SPDX-License-Identifier: BSD-3-Clause
#include "host/nccl/usage.hpp"

#include "host/nccl/call.hpp"
#include "host/nccl/passed_net.hpp"
#include "host/nccl/reach.hpp"
#include "host/nccl/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace weir::nccl {
namespace {

std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    names.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

std::vector<weir_device> devices_here() {
  std::size_t count = 0;
  weir_list_devices(nullptr, 0, &count);
  std::vector<weir_device> devices(count);
  if (count != 0) {
    devices[0].size = sizeof(weir_device);
    if (weir_list_devices(devices.data(), count, &count) != WEIR_OK) {
      throw Failure(Result::system_error, weir_last_error());
    }
    devices.resize(std::min(count, devices.size()));
  }
  return devices;
}

std::vector<weir_device> devices_named(const std::string& list) {
  const std::vector<weir_device> here = devices_here();
  std::vector<weir_device> named;
  for (const std::string& name : names_in(list)) {
    const auto found =
        std::ranges::find_if(here, [&](const weir_device& device) { return name == device.name; });
    if (found == here.end()) {
      std::vector<std::string_view> names;
      std::ranges::transform(here, std::back_inserter(names),
                             [](const weir_device& device) { return device.name; });
      throw Failure(
          Result::invalid_usage,
          fmt::format("WEIR_DEVICE: found '{}'; this host has {}", name,
                      names.empty() ? "no device" : fmt::format("{}", fmt::join(names, ", "))));
    }
    named.push_back(*found);
  }
  return named;
}

/// That no variable is wrong: here it costs NCCL nothing.
void check_settings(const std::vector<weir_device>& devices) {
  for (const weir_device& device : devices) {
    context_of(device);
  }
  group_settings();
}

Usage not_asked_for(std::string why) {
  return {.level = LogLevel::info, .why = std::move(why)};
}

Usage decide() {
  if (std::strtol(environment("NCCL_COLLNET_ENABLE").c_str(), nullptr, 0) != 1) {
    return not_asked_for("not used: NCCL_COLLNET_ENABLE is not 1");
  }
  const std::string devices = value_of(variable("WEIR_DEVICE"));
  if (devices.empty()) {
    return not_asked_for("not used: WEIR_DEVICE is not set");
  }
  Usage usage;
  try {
    usage.devices = devices_named(devices);
    check_settings(usage.devices);
    const std::string address = value_of(variable("WEIR_SWITCH"));
    if (address.empty()) {
      throw Failure(Result::invalid_usage, "WEIR_SWITCH is not set: it is the address of the "
                                           "switch's control service, which makes the rings");
    }
    reach(address);
    if (const std::string problem = problem_of_passed_net(); !problem.empty()) {
      throw Failure(Result::invalid_usage, problem);
    }
    usage.is_used = true;
    usage.level = LogLevel::info;
    usage.why =
        fmt::format("used, since NCCL_COLLNET_ENABLE is 1 and switch {} answers: all-reduces "
                    "of CollNet by device {}; point-to-point by {}",
                    address, devices, name_of_passed_net());
  } catch (const std::exception& error) {
    usage.why = fmt::format("not used: {}", error.what());
  }
  return usage;
}

} // namespace

const Usage& usage() {
  static const Usage decided = decide();
  return decided;
}

} // namespace weir::nccl
