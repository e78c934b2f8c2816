// SPDX-License-Identifier: BSD-3-Clause
#include "netsim/region_run.hpp"

#include "netsim/reduction_table.hpp"
#include "netsim/region_fabric.hpp"
#include "netsim/region_gpu.hpp"

#include <fmt/format.h>

#include <cassert>
#include <deque>

namespace weir::netsim {
namespace {

using Kind = RegionPacket::Kind;

/// The common part of both methods.
class RegionJob {
 public:
  RegionJob(const RegionNetwork& network, std::uint64_t bytes, const RegionSettings& settings)
      : network_(network), settings_(settings), fabric_(network, settings),
        packets_(static_cast<std::uint32_t>((bytes + settings.payload_bytes - 1) /
                                            settings.payload_bytes)),
        to_receive_(std::uint64_t{packets_} * settings.gpus),
        ports_(std::max(network.gpus_per_group + fabric_.lanes(), network.groups)),
        tables_(std::size_t{network.planes} * fabric_.switches() * ports_,
                ReductionTable(settings.table_bytes / settings.payload_bytes)) {}

  virtual ~RegionJob() = default;

  RegionResult run() {
    for (std::uint32_t gpu = 0; gpu < settings_.gpus; ++gpu) {
      inject(gpu, gpu == network_.late_gpu ? network_.late_by : 0);
    }
    while (received_ != to_receive_) {
      if (fabric_.events().empty()) {
        throw SimulationError(fmt::format("{} of {} results have come, and nothing is under way",
                                          received_, to_receive_));
      }
      const auto entry = fabric_.events().pop();
      fabric_.prefetch_soon();
      now_ = entry.time;
      dispatch(entry.event);
    }
    result_.duration = now_;
    result_.mean_latency = latency_.mean();
    result_.median_latency = latency_.quantile(500);
    result_.p99_latency = latency_.quantile(990);
    result_.events = fabric_.events().pushed();
    return result_;
  }

 protected:
  virtual WaveControl& control_of(std::uint32_t gpu) = 0;
  /// Begins one more read or request of an address.
  virtual void begin(std::uint32_t gpu, std::uint32_t address, Time when) = 0;
  virtual void at_switch(SwitchId at, const RegionPacket& packet) = 0;
  virtual void at_gpu(std::uint32_t gpu, const RegionPacket& packet) = 0;
  virtual void from_memory(std::uint32_t gpu, std::uint32_t number) = 0;
  virtual void expire(std::uint32_t table, std::uint32_t address) = 0;

  /// A number of the GPU's own, from the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA
  /// 2014).
  std::uint64_t stride_of(std::uint32_t gpu) const {
    if (settings_.order == RegionSettings::Order::by_address) {
      return 0;
    }
    std::uint64_t mixed = settings_.seed * 0x9e3779b97f4a7c15 + gpu;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return (mixed ^ (mixed >> 31)) >> 32 | 1;
  }

  void inject(std::uint32_t gpu, Time when) {
    for (std::uint32_t plane = 0; plane < network_.planes; ++plane) {
      inject_on(gpu, plane, when);
    }
  }

  void inject_on(std::uint32_t gpu, std::uint32_t plane, Time when) {
    WaveControl& control = control_of(gpu);
    while (control.reading(plane) < settings_.memory_reads && control.has_next(plane)) {
      ++control.reading(plane);
      begin(gpu, control.take_next(plane), when);
    }
  }

  /// A GPU has the sum of an address.
  void receive_sum(std::uint32_t gpu, std::uint32_t address) {
    ++received_;
    if (control_of(gpu).owns(address) &&
        control_of(gpu).complete(address) == WaveControl::Progress::wave_credited) {
      inject(gpu, now_);
    }
  }

  void end_way(const RegionPacket& packet) { latency_.add(now_ - packet.sent); }

  std::uint32_t table_at(std::uint32_t plane, SwitchId at, std::uint32_t port) const {
    return (plane * fabric_.switches() + at) * ports_ + port;
  }

  const RegionNetwork network_;
  const RegionSettings settings_;
  RegionFabric fabric_;
  Time now_ = 0;
  std::uint32_t packets_;
  std::uint64_t to_receive_;
  std::uint64_t received_ = 0;
  std::uint32_t ports_; // ports of a switch
  std::vector<ReductionTable> tables_;
  LatencyHistogram latency_;
  RegionResult result_;

 private:
  void dispatch(const RegionFabric::Event& event) {
    if (event.place == RegionFabric::Place::from_memory) {
      return from_memory(event.at, event.packet);
    }
    if (event.place == RegionFabric::Place::timeout) {
      return expire(event.at, event.packet);
    }
    const RegionPacket packet = fabric_[event.packet];
    fabric_.release(event.packet);
    if (event.place == RegionFabric::Place::at_switch) {
      at_switch(event.at, packet);
    } else {
      at_gpu(event.at, packet);
    }
  }
};

/// §IV-C, with partial sums that go to home GPUs.
class PushJob : public RegionJob {
 public:
  PushJob(const RegionNetwork& network, std::uint64_t bytes, const RegionSettings& settings)
      : RegionJob(network, bytes, settings), partials_(packets_) {
    for (std::uint32_t gpu = 0; gpu < settings.gpus; ++gpu) {
      controls_.emplace_back(settings, network.planes, 0, packets_, stride_of(gpu));
    }
  }

 private:
  struct Home {
    SwitchId at = 0;
    std::uint32_t port = 0;
    std::uint32_t lane = 0;
    std::uint32_t gpu = 0;
  };

  /// The home of an address. A plane's addresses take its ports in turn, so those under way at the
  /// same time are in different tables.
  Home home_of(std::uint32_t address) const {
    const std::uint32_t leaf_ports = network_.gpus_per_group + fabric_.lanes();
    const std::uint32_t on_leaves = network_.groups * leaf_ports;
    const std::uint32_t ports = on_leaves + network_.spines * network_.groups;
    const std::uint32_t number = address / network_.planes;
    const std::uint32_t port = number % ports;
    Home home;
    home.gpu = number % settings_.gpus;
    if (port < on_leaves) {
      home.at = port % network_.groups;
      home.port = port / network_.groups;
      home.lane = number / network_.groups % fabric_.lanes();
    } else {
      home.lane = (port - on_leaves) % network_.spines;
      home.at = fabric_.spine_of_lane(home.lane);
      home.port = (port - on_leaves) / network_.spines;
    }
    return home;
  }

  WaveControl& control_of(std::uint32_t gpu) override { return controls_[gpu]; }

  void begin(std::uint32_t gpu, std::uint32_t address, Time when) override {
    fabric_.events().push(when + fabric_.memory_latency(),
                          {RegionFabric::Place::from_memory, 0, gpu, address});
  }

  void from_memory(std::uint32_t gpu, std::uint32_t address) override {
    RegionPacket packet;
    packet.kind = Kind::contribution;
    packet.address = address;
    packet.sent = now_;
    const Time leaves = fabric_.send_up(gpu, packet, now_);
    const std::uint32_t plane = fabric_.plane_of(address);
    assert(controls_[gpu].reading(plane) != 0);
    --controls_[gpu].reading(plane);
    inject_on(gpu, plane, leaves);
  }

  void at_switch(SwitchId at, const RegionPacket& packet) override {
    const Home home = home_of(packet.address);
    switch (packet.kind) {
    case Kind::contribution:
      return at == home.at ? fold(home, packet)
                           : fabric_.send_towards(at, home.at, home.lane, packet, now_);
    case Kind::partial:
      return at == fabric_.leaf_of(packet.gpu)
                 ? fabric_.send_down(packet.gpu, packet, now_)
                 : fabric_.send_towards(at, fabric_.leaf_of(packet.gpu), home.lane, packet, now_);
    default:
      return fabric_.spread(at, home.lane, packet, now_);
    }
  }

  void fold(const Home& home, const RegionPacket& packet) {
    end_way(packet);
    ++result_.folded;
    const std::uint32_t number = table_at(fabric_.plane_of(packet.address), home.at, home.port);
    ReductionTable& table = tables_[number];
    ReductionTable::Entry* entry = table.find(packet.address);
    if (entry == nullptr) {
      if (table.is_full()) {
        send_partial(table.evict());
      }
      entry = &table.allocate(packet.address, now_);
      wait_for(number, packet.address, now_ + settings_.entry_timeout);
    }
    entry->touched = now_;
    if (++entry->count == settings_.gpus) {
      table.free(*entry);
      RegionPacket sum;
      sum.kind = Kind::result;
      sum.address = packet.address;
      sum.sent = now_;
      fabric_.spread(home.at, home.lane, sum, now_);
    }
  }

  void wait_for(std::uint32_t table, std::uint32_t address, Time until) {
    fabric_.events().push(until, {RegionFabric::Place::timeout, 0, table, address});
  }

  /// An evicted address can never reach its count in the table again.
  void expire(std::uint32_t number, std::uint32_t address) override {
    ReductionTable::Entry* entry = tables_[number].find(address);
    if (entry == nullptr) {
      return;
    }
    if (entry->touched + settings_.entry_timeout > now_) {
      return wait_for(number, address, entry->touched + settings_.entry_timeout);
    }
    const ReductionTable::Entry evicted = *entry;
    tables_[number].free(*entry);
    send_partial(evicted);
  }

  void send_partial(const ReductionTable::Entry& entry) {
    ++result_.evictions;
    const Home home = home_of(entry.address);
    RegionPacket packet;
    packet.kind = Kind::partial;
    packet.address = entry.address;
    packet.gpu = home.gpu;
    packet.count = entry.count;
    packet.sent = now_;
    at_switch(home.at, packet);
  }

  void at_gpu(std::uint32_t gpu, const RegionPacket& packet) override {
    end_way(packet);
    if (packet.kind == Kind::partial) {
      partials_[packet.address] += packet.count;
      if (partials_[packet.address] != settings_.gpus) {
        return;
      }
      RegionPacket sum;
      sum.kind = Kind::result;
      sum.address = packet.address;
      sum.gpu = gpu;
      sum.sent = now_;
      fabric_.send_up(gpu, sum, now_);
    }
    receive_sum(gpu, packet.address);
  }

  std::vector<WaveControl> controls_;
  std::vector<std::uint32_t> partials_; // by address: contributions that its home GPU has
};

/// §IV-B: each GPU reads its share of the addresses from all others and multicasts the sums.
class PullJob : public RegionJob {
 public:
  PullJob(const RegionNetwork& network, std::uint64_t bytes, const RegionSettings& settings)
      : RegionJob(network, bytes, settings), stalled_(std::size_t{network.planes} * settings.gpus) {
    for (std::uint32_t gpu = 0; gpu < settings.gpus; ++gpu) {
      const auto share_begin = [&](std::uint64_t rank) {
        return static_cast<std::uint32_t>(rank * packets_ / settings.gpus);
      };
      controls_.emplace_back(settings, network.planes, share_begin(gpu), share_begin(gpu + 1),
                             stride_of(gpu));
    }
  }

 private:
  WaveControl& control_of(std::uint32_t gpu) override { return controls_[gpu]; }

  void begin(std::uint32_t gpu, std::uint32_t address, Time when) override {
    RegionPacket packet;
    packet.kind = Kind::request;
    packet.address = address;
    packet.gpu = gpu;
    packet.sent = when;
    fabric_.send_up(gpu, packet, when);
  }

  std::uint32_t lane_of(std::uint32_t gpu) const { return fabric_.port_of(gpu) % fabric_.lanes(); }

  /// The table on a switch for what that GPU asked for.
  ReductionTable& table_for(SwitchId at, const RegionPacket& packet) {
    const SwitchId first = fabric_.leaf_of(packet.gpu);
    std::uint32_t port = first; // a spine's port, towards the first leaf
    if (fabric_.is_leaf(at)) {
      port = at == first ? fabric_.port_of(packet.gpu) : fabric_.port_of_lane(lane_of(packet.gpu));
    }
    return tables_[table_at(fabric_.plane_of(packet.address), at, port)];
  }

  /// Contributions that will come through that switch.
  std::uint32_t expected_at(SwitchId at, std::uint32_t gpu) const {
    const SwitchId first = fabric_.leaf_of(gpu);
    if (at == first) {
      return settings_.gpus - 1;
    }
    return fabric_.is_leaf(at) ? fabric_.members_of(at)
                               : settings_.gpus - fabric_.members_of(first);
  }

  void at_switch(SwitchId at, const RegionPacket& packet) override {
    switch (packet.kind) {
    case Kind::request:
      return packet.came_from == kNobody ? admit(at, packet) : pass_on(at, packet);
    case Kind::response:
      return fold(at, packet);
    default:
      return fabric_.spread(at, lane_of(packet.gpu), packet, now_);
    }
  }

  /// A request waits until it gets an entry at the first hop.
  void admit(SwitchId at, const RegionPacket& packet) {
    ReductionTable& table = table_for(at, packet);
    const std::uint32_t plane = fabric_.plane_of(packet.address);
    if (table.is_full()) {
      stalled_[plane * settings_.gpus + packet.gpu].push_back(packet);
      return;
    }
    table.allocate(packet.address, now_);
    fabric_.spread(at, lane_of(packet.gpu), packet, now_);
    assert(controls_[packet.gpu].reading(plane) != 0);
    --controls_[packet.gpu].reading(plane);
    inject_on(packet.gpu, plane, now_);
  }

  void pass_on(SwitchId at, const RegionPacket& packet) {
    ReductionTable& table = table_for(at, packet);
    if (!table.is_full()) {
      table.allocate(packet.address, now_);
    }
    fabric_.spread(at, lane_of(packet.gpu), packet, now_);
  }

  void fold(SwitchId at, RegionPacket packet) {
    ReductionTable& table = table_for(at, packet);
    ReductionTable::Entry* entry = table.find(packet.address);
    if (entry == nullptr) {
      ++result_.bypasses;
      return fabric_.send_towards(at, fabric_.leaf_of(packet.gpu), lane_of(packet.gpu), packet,
                                  now_);
    }
    end_way(packet);
    ++result_.folded;
    entry->count += packet.count;
    if (entry->count != expected_at(at, packet.gpu)) {
      return;
    }
    packet.count = entry->count;
    packet.sent = now_;
    table.free(*entry);
    if (at != fabric_.leaf_of(packet.gpu)) {
      return fabric_.send_towards(at, fabric_.leaf_of(packet.gpu), lane_of(packet.gpu), packet,
                                  now_);
    }
    fabric_.send_down(packet.gpu, packet, now_);
    std::deque<RegionPacket>& stalled =
        stalled_[fabric_.plane_of(packet.address) * settings_.gpus + packet.gpu];
    if (!stalled.empty()) {
      const RegionPacket next = stalled.front();
      stalled.pop_front();
      admit(at, next);
    }
  }

  void at_gpu(std::uint32_t gpu, const RegionPacket& packet) override {
    switch (packet.kind) {
    case Kind::request:
      fabric_.events().push(now_ + fabric_.memory_latency(),
                            {RegionFabric::Place::from_memory, 0, gpu, remember(packet)});
      return;
    case Kind::response: {
      end_way(packet);
      RegionPacket sum = packet;
      sum.kind = Kind::result;
      sum.came_from = kNobody;
      sum.sent = now_;
      fabric_.send_up(gpu, sum, now_);
      return receive_sum(gpu, packet.address);
    }
    default:
      end_way(packet);
      return receive_sum(gpu, packet.address);
    }
  }

  std::uint32_t remember(const RegionPacket& packet) {
    if (free_.empty()) {
      asked_.push_back(packet);
      return static_cast<std::uint32_t>(asked_.size() - 1);
    }
    const std::uint32_t number = free_.back();
    free_.pop_back();
    asked_[number] = packet;
    return number;
  }

  void from_memory(std::uint32_t gpu, std::uint32_t number) override {
    RegionPacket packet = asked_[number];
    free_.push_back(number);
    packet.kind = Kind::response;
    packet.came_from = kNobody;
    packet.sent = now_;
    fabric_.send_up(gpu, packet, now_);
  }

  void expire(std::uint32_t /*table*/, std::uint32_t /*address*/) override {}

  std::vector<WaveControl> controls_;
  std::vector<std::deque<RegionPacket>> stalled_; // by plane and GPU: at the first hop
  std::vector<RegionPacket> asked_;               // requests whose memory is being read
  std::vector<std::uint32_t> free_;               // free places in asked_
};

void require_sensible(const RegionNetwork& network, std::uint64_t bytes,
                      const RegionSettings& settings) {
  if (network.planes == 0 || network.groups < 2 || network.gpus_per_group == 0 ||
      network.bits_per_second == 0) {
    throw SimulationError("a region's network has planes, two groups at least, GPUs and a rate");
  }
  if (network.spines == 0 && network.groups != 2) {
    throw SimulationError(
        fmt::format("{} groups need spines; only two are joined directly", network.groups));
  }
  if (settings.gpus < 2 || settings.gpus > network.groups * network.gpus_per_group) {
    throw SimulationError(fmt::format("found {} GPUs; allowed: 2 to {}", settings.gpus,
                                      network.groups * network.gpus_per_group));
  }
  if (settings.payload_bytes == 0 || settings.table_bytes < settings.payload_bytes) {
    throw SimulationError(fmt::format("a table of {} bytes holds no packet of {}; one is the least",
                                      settings.table_bytes, settings.payload_bytes));
  }
  if (bytes == 0 || bytes / settings.payload_bytes >= kNobody || settings.memory_reads == 0 ||
      settings.wave_bytes == 0 || settings.entry_timeout == 0) {
    throw SimulationError("a run needs bytes, fewer than 2^32 packets of them, memory reads, waves "
                          "of some bytes, and a timeout of entries");
  }
}

} // namespace

RegionNetwork dgx2_network() {
  return {};
}

RegionNetwork klenk_fat_tree() {
  RegionNetwork network;
  network.groups = 16;
  network.spines = 8;
  return network;
}

RegionResult run_region(const RegionNetwork& network, std::uint64_t bytes,
                        const RegionSettings& settings) {
  require_sensible(network, bytes, settings);
  if (settings.method == RegionSettings::Method::push) {
    return PushJob(network, bytes, settings).run();
  }
  RegionResult result = PullJob(network, bytes, settings).run();
  if (settings.method == RegionSettings::Method::pull_synchronised) {
    const std::uint64_t flags = std::uint64_t{settings.gpus} * settings.payload_bytes;
    result.duration += PullJob(network, flags, settings).run().duration;
  }
  return result;
}

} // namespace weir::netsim
