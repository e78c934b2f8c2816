// SPDX-License-Identifier: BSD-3-Clause
#include "control/port.hpp"

#include "control/af_xdp.hpp"
#include "control/device_socket.hpp"
#include "control/kernel_interface.hpp"
#include "control/rte_flow_table.hpp"
#include "ethdev/device_end.hpp"
#include "ethdev/drivers.hpp"
#include "files/trusted_folder.hpp"
#include "frame/frame.hpp"

#include <fmt/format.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <net/if.h>
#include <numeric>
#include <span>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace weir::control {
namespace {

constexpr std::uint16_t kNoDevice = RTE_MAX_ETHPORTS;

std::uint16_t find_device(const config::PortConfig& port) {
  std::uint16_t device = kNoDevice;
  return rte_eth_dev_get_port_by_name(port.device_name().c_str(), &device) == 0 ? device
                                                                                : kNoDevice;
}

bool is_pci(const rte_eth_dev_info& info) {
  return info.device != nullptr &&
         std::string_view(rte_bus_name(rte_dev_bus(info.device))) == "pci";
}

/// nullptr for a device that has none.
std::unique_ptr<KernelInterface> watched(const config::PortConfig& port) {
  const std::optional<std::string> name = interface_below(port.device);
  if (!name) {
    return nullptr;
  }
  try {
    return std::make_unique<KernelInterface>(*name);
  } catch (const std::system_error& error) {
    throw PortError(error.code() == std::errc::no_such_device
                        ? fmt::format("port {}: device {}: found no interface {}; allowed: {}",
                                      port.name, port.device, *name, interfaces_there())
                        : fmt::format("port {}: device {}: no packet socket on {} ({}); it needs "
                                      "CAP_NET_RAW",
                                      port.name, port.device, *name, error.code().message()));
  }
}

int numa_node_of_device(std::uint16_t device) {
  rte_eth_dev_info info{};
  const bool has_node = rte_eth_dev_info_get(device, &info) == 0 && is_pci(info);
  return has_node ? rte_eth_dev_socket_id(device) : kNoNode;
}

std::optional<std::uint64_t> first_besides(std::span<const std::uint64_t> others,
                                           std::span<const std::uint64_t> all) {
  const auto found = std::ranges::find_if(
      all, [others](std::uint64_t one) { return std::ranges::count(others, one) == 0; });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

} // namespace

int numa_node_of(const config::PortConfig& port) {
  const std::uint16_t device = find_device(port);
  return device == kNoDevice ? kNoNode : numa_node_of_device(device);
}

Port::Port(const config::PortConfig& config)
    : config_(config), interface_(watched(config)), device_(find_device(config)) {
  if (device_ == kNoDevice) { // EAL has probed PCI devices
    probe();
  }
  choose_tx_queues();
}

void Port::probe() {
  check_interface();
  make_folder_for_socket();
  make_way_for_socket();
  check(rte_dev_probe(config_.device.c_str()), "cannot be probed");
  device_ = find_device(config_);
  if (device_ == kNoDevice) {
    throw PortError(fmt::format("port {}: device {} was probed, but no Ethernet port has its name",
                                config_.name, config_.device));
  }
}

/// The driver would say that an argument is invalid.
void Port::check_interface() const {
  if (interface_ && ethdev::driver_of(config_.device).name == "net_af_packet") {
    if (const std::string why = why_not_for_af_packet(interface_->name()); !why.empty()) {
      throw PortError(fmt::format("port {}: device {}: {}", config_.name, config_.device, why));
    }
  }
}

/// So that only this user and root can be at the other end: DPDK 22.11's memif server aborts when
/// a client leaves before its hello, and whoever comes first is the port's host.
void Port::make_folder_for_socket() {
  const std::string file = socket_file_of(config_.device);
  if (file.empty()) {
    return;
  }
  const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  if (mkdir(folder.c_str(), S_IRWXU) == 0) {
    warnings_.push_back(
        fmt::format("port {}: made {} for its socket", config_.name, folder.string()));
  } else if (errno != EEXIST) {
    throw PortError(
        fmt::format("port {}: device {}: found no folder {}, and it cannot be made ({}); "
                    "allowed: a folder that this user may write to",
                    config_.name, config_.device, folder.string(), std::strerror(errno)));
  }
  if (const std::string flaw = files::why_not_trusted(folder); !flaw.empty()) {
    throw PortError(fmt::format("port {}: device {}: {}; allowed: a socket in a folder that only "
                                "this user and root can change",
                                config_.name, config_.device, flaw));
  }
}

/// Never takes a name that is in use: net_vhost removes whatever file it cannot bind to.
void Port::make_way_for_socket() {
  const auto socket = device_socket(config_.device);
  if (!socket) {
    return;
  }
  const auto refuse = [&](const std::string& why) {
    throw PortError(fmt::format("port {}: device {}: {}; allowed: a path where no file is",
                                config_.name, config_.device, why));
  };
  switch (occupant_of(*socket)) {
  case Occupant::nobody:
    return;
  case Occupant::listener:
    if (!socket->is_shared) {
      refuse(fmt::format("a process listens on {}, or this one may not open it", socket->file));
    }
    return;
  case Occupant::other_file:
    refuse(fmt::format("{} is no socket", socket->file));
    return;
  case Occupant::stale_socket:
    if (unlink(socket->file.c_str()) != 0) {
      refuse(fmt::format("nobody listens on {}, and it cannot be removed ({})", socket->file,
                         std::strerror(errno)));
    }
    warnings_.push_back(fmt::format("port {}: removed {}, where nobody listened any more",
                                    config_.name, socket->file));
  }
}

void Port::choose_tx_queues() {
  tx_queues_.device = device_;
  rte_eth_dev_info info{};
  check(rte_eth_dev_info_get(device_, &info), "does not tell what it can do");
  const ethdev::TxQueues rule = ethdev::driver_of(info.driver_name).tx_queues;
  has_paired_queues_ = rule == ethdev::TxQueues::as_many_as_rx;
  const bool has_class_queues = is_pci(info) && rule == ethdev::TxQueues::any;
  if (info.max_tx_queues >= frame::kTrafficClasses && has_class_queues) {
    std::iota(tx_queues_.queues.begin(), tx_queues_.queues.end(), std::uint16_t{0});
  }
}

/// More than are used where the driver takes only as many as there are receive queues.
std::uint16_t Port::number_of_tx_queues() const {
  const std::uint16_t used =
      *std::max_element(tx_queues_.queues.begin(), tx_queues_.queues.end()) + 1;
  return has_paired_queues_ ? std::max(used, config_.rx_queues) : used;
}

Port::~Port() {
  close();
}

void Port::check(int answer, const char* what) const {
  if (answer < 0) {
    const int error = answer == -1 ? rte_errno : -answer;
    const std::string_view needs = ethdev::driver_of(config_.device).needs;
    throw PortError(fmt::format("port {}: device {} {}: {}{}{}", config_.name, config_.device, what,
                                error == 0 ? "the driver gives no reason" : rte_strerror(error),
                                needs.empty() ? "" : "; ", needs));
  }
}

void Port::start(rte_mempool* pool) {
  const std::lock_guard lock(one_user_);
  if (const std::string why = keeps_buffers(config_) ? why_af_xdp_cannot_use(*pool) : "";
      !why.empty()) {
    throw PortError(fmt::format("port {}: device {}: {}", config_.name, config_.device, why));
  }
  configure();
  set_up_queues(pool);
  start_device();
  if (config_.rx_steering == config::RxSteering::flow) {
    steering_.emplace(std::make_unique<RteFlowTable>(device_));
  }
  // A switch receives frames for every address. Devices without promiscuous mode receive them
  // anyway.
  if (const int answer = rte_eth_promiscuous_enable(device_); answer < 0 && answer != -ENOTSUP) {
    check(answer, "cannot be set to promiscuous mode");
  }
}

void Port::start_device() {
  if (has_to_wait_for_listener(config_.device)) {
    return;
  }
  const std::vector<std::uint64_t> others = connections_of(config_.device);
  check(rte_eth_dev_start(device_), "cannot be started");
  is_started_ = true;
  connection_ = first_besides(others, connections_of(config_.device));
}

bool Port::is_started() const {
  const std::lock_guard lock(one_user_);
  return is_started_;
}

int Port::numa_node() const {
  return numa_node_of_device(device_);
}

void Port::configure() {
  rte_eth_dev_info info{};
  check(rte_eth_dev_info_get(device_, &info), "does not tell what it can do");
  if (config_.rx_queues > info.max_rx_queues) {
    throw PortError(fmt::format("port {}: rx_queues: found {}; allowed for {}: 1 .. {}",
                                config_.name, config_.rx_queues, info.driver_name,
                                info.max_rx_queues));
  }
  rte_eth_conf conf{};
  conf.rxmode.mtu = std::min(config_.mtu, info.max_mtu);
  if (config_.rx_queues > 1) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    // Hash addresses and UDP ports: a queue pair keeps its source port, so its packets stay on one
    // queue.
    conf.rx_adv_conf.rss_conf.rss_hf =
        (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP) & info.flow_type_rss_offloads;
  }
  int answer = rte_eth_dev_configure(device_, config_.rx_queues, number_of_tx_queues(), &conf);
  if (answer == -EINVAL && conf.rxmode.mtu > RTE_ETHER_MTU) {
    conf.rxmode.mtu = RTE_ETHER_MTU;
    answer = rte_eth_dev_configure(device_, config_.rx_queues, number_of_tx_queues(), &conf);
  }
  check(answer, "cannot be configured");
  set_mtu(info.driver_name);
}

/// Fails when the device does not take the MTU: it could block on the first long frame (net_tap
/// does).
void Port::set_mtu(const char* driver) {
  const int answer = rte_eth_dev_set_mtu(device_, config_.mtu);
  std::uint16_t mtu = 0;
  check(rte_eth_dev_get_mtu(device_, &mtu), "does not tell its MTU");
  if (mtu >= config_.mtu) {
    return;
  }
  if (ethdev::driver_of(driver).mtu_limit == ethdev::MtuLimit::held) {
    throw PortError(fmt::format("port {}: mtu: found {}; allowed for {}: up to {}", config_.name,
                                config_.mtu, driver, mtu));
  }
  warnings_.push_back(
      fmt::format("port {}: {} does not set MTU {} ({}); the link below it must have it",
                  config_.name, driver, config_.mtu, rte_strerror(-answer)));
}

void Port::set_up_queues(rte_mempool* pool) {
  std::uint16_t rx_descriptors = config_.rx_descriptors;
  std::uint16_t tx_descriptors = config_.tx_descriptors;
  check(rte_eth_dev_adjust_nb_rx_tx_desc(device_, &rx_descriptors, &tx_descriptors),
        "does not accept its numbers of descriptors");
  const auto socket = static_cast<unsigned>(std::max(rte_eth_dev_socket_id(device_), 0));
  for (std::uint16_t queue = 0; queue < config_.rx_queues; ++queue) {
    check(rte_eth_rx_queue_setup(device_, queue, rx_descriptors, socket, nullptr, pool),
          "has a receive queue that cannot be set up");
  }
  for (std::uint16_t queue = 0; queue < number_of_tx_queues(); ++queue) {
    check(rte_eth_tx_queue_setup(device_, queue, tx_descriptors, socket, nullptr),
          "has a transmit queue that cannot be set up");
  }
}

void Port::stop() {
  const std::lock_guard lock(one_user_);
  stop_device();
}

void Port::stop_device() {
  steering_.reset(); // while the device can still remove its rules
  if (std::exchange(is_started_, false)) {
    ethdev::stop_device(device_);
  }
}

void Port::close() {
  const std::lock_guard lock(one_user_);
  close_device();
}

void Port::close_device() {
  if (device_ != kNoDevice) {
    steering_.reset();
    is_started_ = false;
    ethdev::stop_and_close_device(std::exchange(device_, kNoDevice));
  }
}

void Port::detach() {
  const std::lock_guard lock(one_user_);
  rte_eth_dev_info info{};
  if (rte_eth_dev_info_get(device_, &info) == 0) {
    close_device();
    check(rte_dev_remove(info.device), "is closed, but cannot be detached");
  }
}

void Port::install_rules(const SteeringPlan& plan) {
  const std::lock_guard lock(one_user_);
  if (steering_) {
    steering_->install(plan);
  }
}

void Port::keep_only_rules(const SteeringPlan& plan) {
  const std::lock_guard lock(one_user_);
  if (steering_) {
    steering_->keep_only(plan);
  }
}

std::optional<SteeringState> Port::steering() const {
  const std::lock_guard lock(one_user_);
  return steering_ ? std::optional(steering_->state()) : std::nullopt;
}

/// Drivers on an interface of the kernel say that it is up, whatever has become of it.
std::string Port::link() const {
  if (interface_) {
    return interface_->link();
  }
  rte_eth_link link{};
  if (rte_eth_link_get_nowait(device_, &link) != 0) {
    return {};
  }
  return link.link_status == RTE_ETH_LINK_UP ? "up" + speed_text(link.link_speed) : "down";
}

std::string Port::remedy() const {
  if (connects_once(config_.device) && !link().starts_with("up")) {
    return fmt::format("the switch connects when somebody listens on {}",
                       socket_file_of(config_.device));
  }
  if (!interface_ || !interface_->has_gone()) {
    return {};
  }
  if (keeps_buffers(config_)) {
    return "it takes a restart of the switch";
  }
  return why_gone_.empty() ? fmt::format("the switch opens the port again when there is an "
                                         "interface {}",
                                         interface_->name())
                           : fmt::format("the switch tries to open it again: {}", why_gone_);
}

bool Port::can_be_replaced() const {
  const std::lock_guard lock(one_user_);
  return interface_ && !keeps_buffers(config_) && interface_->has_gone() &&
         if_nametoindex(interface_->name().c_str()) != 0;
}

void Port::tell_why_gone(const std::string& why) {
  const std::lock_guard lock(one_user_);
  why_gone_ = why;
}

bool Port::can_reconnect() {
  const std::lock_guard lock(one_user_);
  return device_ != kNoDevice && connects_once(config_.device) && !link().starts_with("up") &&
         !is_calling() && !has_to_wait_for_listener(config_.device);
}

/// Whether its last call is neither answered nor refused. To take one back that waits makes DPDK
/// 22.11's memif server abort.
bool Port::is_calling() const {
  return connection_ && std::ranges::count(connections_of(config_.device), *connection_) != 0;
}

void Port::restart() {
  const std::lock_guard lock(one_user_);
  stop_device();
  start_device();
}

PortInformation Port::information() const {
  const std::lock_guard lock(one_user_);
  PortInformation information;
  rte_eth_dev_info info{};
  if (rte_eth_dev_info_get(device_, &info) == 0) {
    information.driver = info.driver_name;
  }
  rte_ether_addr mac{};
  if (rte_eth_macaddr_get(device_, &mac) == 0) {
    wire::MacAddress address;
    std::copy_n(mac.addr_bytes, address.bytes.size(), address.bytes.begin());
    information.mac = wire::to_string(address);
  }
  information.link = link();
  information.remedy = remedy();
  information.mtu = config_.mtu;
  information.numa_node = rte_eth_dev_socket_id(device_);
  information.promiscuous = rte_eth_promiscuous_get(device_) == 1;
  return information;
}

bool Port::is_down() const {
  const std::lock_guard lock(one_user_);
  const std::string text = link();
  return text.starts_with("down") || text.starts_with("gone");
}

DeviceLosses Port::losses() const {
  const std::lock_guard lock(one_user_);
  rte_eth_stats stats{};
  if (rte_eth_stats_get(device_, &stats) != 0) {
    return {};
  }
  return {stats.imissed + stats.rx_nombuf, stats.ierrors, stats.oerrors};
}

void Port::clear_statistics() {
  const std::lock_guard lock(one_user_);
  rte_eth_stats_reset(device_);
  rte_eth_xstats_reset(device_);
}

std::vector<std::pair<std::string, std::uint64_t>> Port::extended_statistics() const {
  const std::lock_guard lock(one_user_);
  const int count = rte_eth_xstats_get_names(device_, nullptr, 0);
  if (count <= 0) {
    return {};
  }
  std::vector<rte_eth_xstat_name> names(static_cast<std::size_t>(count));
  std::vector<rte_eth_xstat> values(names.size());
  if (rte_eth_xstats_get_names(device_, names.data(), static_cast<unsigned>(count)) != count ||
      rte_eth_xstats_get(device_, values.data(), static_cast<unsigned>(count)) != count) {
    return {};
  }
  std::vector<std::pair<std::string, std::uint64_t>> statistics;
  for (const rte_eth_xstat& value : values) {
    statistics.emplace_back(names[value.id].name, value.value);
  }
  return statistics;
}

} // namespace weir::control
