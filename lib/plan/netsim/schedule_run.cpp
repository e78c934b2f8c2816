// SPDX-License-Identifier: BSD-3-Clause
#include "netsim/schedule_run.hpp"

#include "netsim/credit_fabric.hpp"
#include "netsim/event.hpp"
#include "netsim/fifo_fabric.hpp"
#include "netsim/schedule_network.hpp"
#include "netsim/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <deque>

namespace weir::netsim {
namespace {

using plan::Entry;
using plan::Message;
using plan::MessageId;
using plan::Operation;
using plan::Schedule;
using plan::VertexId;

/// The rows that wait for each message.
class Waiters {
 public:
  explicit Waiters(const Schedule& schedule) : first_(schedule.messages.size() + 1) {
    for (const MessageId message : schedule.waits) {
      ++first_[message + 1];
    }
    for (std::size_t i = 1; i < first_.size(); ++i) {
      first_[i] += first_[i - 1];
    }
    rows_.resize(schedule.waits.size());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (std::uint32_t row = 0; row < schedule.entries.size(); ++row) {
      for (const MessageId message : schedule.waits_of(schedule.entries[row])) {
        rows_[next[message]++] = row;
      }
    }
  }

  std::span<const std::uint32_t> of(MessageId message) const {
    return std::span(rows_).subspan(first_[message], first_[message + 1] - first_[message]);
  }

 private:
  std::vector<std::uint32_t> first_; // message → position in rows_; one more at the end
  std::vector<std::uint32_t> rows_;
};

/// A node's position in its table.
struct NodeState {
  std::uint32_t row = 0;    // first row of the step
  std::uint32_t end = 0;    // end of the step
  std::uint32_t last = 0;   // end of the table
  std::uint32_t turn = 0;   // the channel after the last one that took a message
  std::uint32_t unsent = 0; // messages of the step
  bool has_begun = false;   // a channel took a message of the step
  bool has_sent = false;    // the step before sent something
  bool is_held = false;     // by a NOP
  std::deque<MessageId> to_reduce;
  Time reduction = 0;
};

struct ChannelState {
  bool is_full = false; // it has too many unsent packets for another message
  Time handed_over_at = 0;
};

struct RowState {
  std::uint32_t waits = 0; // messages that have not come
  std::uint32_t taken = 0; // messages sent or being sent
};

/// One run. FabricOf is FifoFabric or CreditFabric.
template <template <class> class FabricOf>
class Run {
 public:
  template <class... FabricArguments>
  Run(const plan::Topology& topology, const Schedule& schedule, std::uint64_t bytes,
      const ScheduleSettings& settings, const FabricArguments&... arguments)
      : topology_(topology), schedule_(schedule), settings_(settings),
        chunk_bytes_((bytes + schedule.chunk_count - 1) / schedule.chunk_count),
        ways_(topology, schedule, settings.nodes), waiters_(schedule),
        sources_(std::size_t{topology.node_count()} * schedule.channels, Source(settings_.framing)),
        channels_(sources_.size()),
        fabric_(ways_.network(), events_, sources_, *this, arguments...),
        packets_left_(schedule.messages.size()) {
    result_.step_start.assign(schedule.step_count + 1, kNever);
    result_.step_end.assign(schedule.step_count + 1, 0);
    open_tables();
  }

  ScheduleResult run() {
    for (VertexId node = 0; node < topology_.node_count(); ++node) {
      advance(node, 0);
    }
    wake_nodes();
    while (!events_.empty()) {
      const auto entry = events_.pop();
      now_ = entry.time;
      dispatch(entry.event);
      wake_nodes();
    }
    require_all_arrived();
    return collect();
  }

  // The fabric's Traveller:

  void packet_leaves(const Packet& packet, Time arrival) {
    assert(packets_left_[packet.message] != 0);
    if (--packets_left_[packet.message] == 0) {
      events_.push(arrival + settings_.nodes.interface_latency,
                   {EventKind::message_there, packet.message});
    }
  }

  void source_sends(std::uint32_t source) {
    ChannelState& channel = channels_[source];
    if (channel.is_full && sources_[source].unsent() <= settings_.nodes.buffered_packets) {
      channel.is_full = false;
      woken_.push_back(source / schedule_.channels);
    }
  }

 private:
  void open_tables() {
    nodes_.resize(topology_.node_count());
    rows_.resize(schedule_.entries.size());
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      rows_[row].waits = schedule_.entries[row].waits.count;
    }
    for (VertexId node = 0; node < topology_.node_count(); ++node) {
      nodes_[node].end = schedule_.first_row[node];
      nodes_[node].last = schedule_.first_row[node + 1];
      open_step(nodes_[node]);
    }
  }

  /// Opens the rows after the present ones.
  void open_step(NodeState& node) {
    node.row = node.end;
    node.has_begun = false;
    node.unsent = 0;
    while (node.end != node.last &&
           schedule_.entries[node.end].step == schedule_.entries[node.row].step) {
      node.unsent += schedule_.entries[node.end].sends.count;
      ++node.end;
    }
  }

  void dispatch(const Event& event) {
    switch (event.kind) {
    case EventKind::message_there:
      receive(event.subject);
      break;
    case EventKind::reduced:
      finish_reduction(event.subject);
      break;
    case EventKind::step_over:
      nodes_[event.subject].is_held = false;
      open_step(nodes_[event.subject]);
      advance(event.subject, now_);
      break;
    case EventKind::handed_over:
      advance(event.subject, now_);
      break;
    default:
      fabric_.advance(event, now_);
    }
  }

  /// Sources report while a link is being served; their nodes go on when that is done.
  void wake_nodes() {
    while (!woken_.empty()) {
      const VertexId node = woken_.back();
      woken_.pop_back();
      advance(node, now_);
    }
  }

  bool is_free(std::uint32_t source) const {
    return !channels_[source].is_full && channels_[source].handed_over_at <= now_;
  }

  bool are_all_free(VertexId node) const {
    const std::uint32_t first = node * schedule_.channels;
    for (std::uint32_t source = first; source < first + schedule_.channels; ++source) {
      if (!is_free(source)) {
        return false;
      }
    }
    return true;
  }

  /// Lets a node do all that it can do now.
  void advance(VertexId id, Time now) {
    NodeState& node = nodes_[id];
    while (!node.is_held && node.row != node.last) {
      if (node.unsent == 0) {
        pass_nop(id, now);
        continue;
      }
      if (!node.has_begun && waits_for_channels(id)) {
        return;
      }
      if (!send_one(id, now)) {
        return;
      }
      if (node.unsent == 0) {
        node.has_sent = true;
        open_step(node);
      }
    }
  }

  /// Whether a channel is still in use and the node must wait for it. It waits before the first
  /// step of all-gather, and with StepStart::all_channels before every step.
  bool waits_for_channels(VertexId id) const {
    const NodeState& node = nodes_[id];
    const bool is_new_phase = node.row != schedule_.first_row[id] &&
                              schedule_.entries[node.row].operation == Operation::gather &&
                              schedule_.entries[node.row - 1].operation != Operation::gather;
    return (is_new_phase || settings_.nodes.step_start == NodeTraits::StepStart::all_channels) &&
           !are_all_free(id);
  }

  /// Passes a step without messages.
  void pass_nop(VertexId id, Time now) {
    NodeState& node = nodes_[id];
    if (settings_.nodes.lockstep == NodeTraits::Lockstep::ignored) {
      open_step(node);
      return;
    }
    const Time estimate = estimated_step(id);
    node.is_held = true;
    events_.push(now + (node.has_sent ? 2 * estimate : estimate), {EventKind::step_over, id});
    node.has_sent = false;
  }

  /// The time for a chunk's packets on a channel, without those that its buffer holds. (ISCA'21
  /// footnote 4, as in the authors' simulator: buffered payloads count without headers, and a chunk
  /// that fits into the buffer counts as one unit per packet.) The first NOP after a step that sent
  /// waits twice as long, because it does not start with the step.
  Time estimated_step(VertexId id) const {
    const Framing& framing = settings_.framing;
    const std::uint64_t packets = framing.packets_of(chunk_bytes_);
    const std::uint64_t buffered = settings_.nodes.buffered_packets;
    const std::uint64_t bytes =
        packets <= buffered ? packets * framing.unit_bytes
                            : framing.wire_bytes(chunk_bytes_) - buffered * framing.payload_bytes;
    const std::span<const plan::LinkId> links = topology_.outgoing(id);
    return transmission_time(bytes, topology_.link(links.front()).traits.bits_per_second);
  }

  /// kNobody: none is free. Of equally empty channels, the next in turn.
  std::uint32_t free_channel(VertexId id) const {
    const bool takes_lowest = settings_.nodes.channel_choice == NodeTraits::ChannelChoice::lowest;
    const std::uint32_t first = id * schedule_.channels;
    const std::uint32_t turn = takes_lowest ? 0 : nodes_[id].turn;
    std::uint32_t best = kNobody;
    for (std::uint32_t i = 0; i < schedule_.channels; ++i) {
      const std::uint32_t channel = (turn + i) % schedule_.channels;
      if (is_free(first + channel) &&
          (best == kNobody || (!takes_lowest && sources_[first + channel].unsent() <
                                                    sources_[first + best].unsent()))) {
        best = channel;
      }
    }
    return best;
  }

  /// Sends the first ready message of the step on a free channel. False when there is no such
  /// message or channel.
  bool send_one(VertexId id, Time now) {
    NodeState& node = nodes_[id];
    const std::uint32_t channel = free_channel(id);
    if (channel == kNobody) {
      return false;
    }
    for (std::uint32_t row = node.row; row < node.end; ++row) {
      const Entry& entry = schedule_.entries[row];
      if (rows_[row].waits == 0 && rows_[row].taken < entry.sends.count) {
        node.has_begun = true;
        node.turn = channel + 1;
        assert(node.unsent != 0);
        --node.unsent;
        send(entry.sends.begin + rows_[row].taken++, channel, now);
        return true;
      }
    }
    return false;
  }

  void send(MessageId id, std::uint32_t channel, Time now) {
    const Message& message = schedule_.messages[id];
    const std::span<const Hop> route = ways_.route(id, channel);
    const std::uint64_t bytes = chunk_bytes_ * message.chunks.count;
    const std::uint64_t packets = settings_.framing.packets_of(bytes);
    const std::uint64_t at_once = settings_.framing.packets_at_once;
    packets_left_[id] = at_once == 0 ? 1 : (packets + at_once - 1) / at_once;
    result_.packets += packets;
    result_.step_start[message.step] = std::min(result_.step_start[message.step], now);
    const std::uint32_t source = message.from * schedule_.channels + channel;
    sources_[source].add(
        {route.data(), route.data() + route.size(), bytes, packets, id, message.step});
    hand_over(source, packets, now);
    fabric_.wake(source, now);
  }

  void hand_over(std::uint32_t source, std::uint64_t packets, Time now) {
    const std::uint64_t most = settings_.nodes.buffered_packets;
    channels_[source].is_full = sources_[source].unsent() > most;
    if (settings_.nodes.handing_over != 0) {
      channels_[source].handed_over_at =
          now + std::min(packets, most) * settings_.nodes.handing_over;
      events_.push(channels_[source].handed_over_at,
                   {EventKind::handed_over, source / schedule_.channels});
    }
  }

  void receive(MessageId id) {
    const Message& message = schedule_.messages[id];
    result_.step_end[message.step] = std::max(result_.step_end[message.step], now_);
    if (message.operation == Operation::gather || settings_.nodes.reduction_time == 0) {
      clear(id);
      return;
    }
    NodeState& node = nodes_[message.to];
    node.to_reduce.push_back(id);
    if (node.to_reduce.size() == 1) {
      reduce(node);
    }
  }

  void reduce(NodeState& node) {
    const Message& message = schedule_.messages[node.to_reduce.front()];
    const std::uint64_t bytes = chunk_bytes_ * message.chunks.count;
    const std::uint64_t rounds =
        (bytes + settings_.nodes.reduction_bytes - 1) / settings_.nodes.reduction_bytes;
    const Time duration = rounds * settings_.nodes.reduction_time;
    node.reduction += duration;
    events_.push(now_ + duration, {EventKind::reduced, node.to_reduce.front()});
  }

  void finish_reduction(MessageId id) {
    NodeState& node = nodes_[schedule_.messages[id].to];
    node.to_reduce.pop_front();
    if (!node.to_reduce.empty()) {
      reduce(node);
    }
    clear(id);
  }

  /// Nothing waits for that message any more.
  void clear(MessageId id) {
    ++cleared_;
    result_.duration = now_;
    for (const std::uint32_t row : waiters_.of(id)) {
      assert(rows_[row].waits != 0);
      --rows_[row].waits;
    }
    advance(schedule_.messages[id].to, now_);
  }

  void require_all_arrived() const {
    if (cleared_ == schedule_.messages.size()) {
      return;
    }
    const auto stuck = std::find_if(nodes_.begin(), nodes_.end(),
                                    [](const NodeState& node) { return node.row != node.last; });
    const std::string who =
        stuck == nodes_.end()
            ? std::string("packets wait for each other's virtual channels")
            : fmt::format("{} waits in step {}",
                          topology_.name(static_cast<VertexId>(stuck - nodes_.begin())),
                          schedule_.entries[stuck->row].step);
    throw SimulationError(
        fmt::format("the schedule comes to a stop with {} of {} messages there: {}", cleared_,
                    schedule_.messages.size(), who));
  }

  ScheduleResult collect() {
    for (const NodeState& node : nodes_) {
      result_.reduction = std::max(result_.reduction, node.reduction);
    }
    const std::vector<LinkUse>& use = fabric_.use();
    result_.links.assign(use.begin(),
                         use.begin() + static_cast<std::ptrdiff_t>(topology_.links().size()));
    result_.events = events_.pushed();
    return std::move(result_);
  }

  const plan::Topology& topology_;
  const Schedule& schedule_;
  const ScheduleSettings settings_;
  const std::uint64_t chunk_bytes_;
  ScheduleNetwork ways_;
  Waiters waiters_;
  Events events_;
  std::vector<Source> sources_;        // node · channels + channel
  std::vector<ChannelState> channels_; // as sources_
  FabricOf<Run> fabric_;
  Time now_ = 0;
  std::vector<NodeState> nodes_;
  std::vector<RowState> rows_;
  std::vector<std::uint64_t> packets_left_; // by message, counted as they travel
  std::vector<VertexId> woken_;
  std::size_t cleared_ = 0;
  ScheduleResult result_;
};

void require_sensible(const Schedule& schedule, const ScheduleSettings& settings) {
  const Framing& framing = settings.framing;
  if (schedule.chunk_count == 0 || schedule.channels == 0) {
    throw SimulationError("a schedule needs at least one chunk and one channel");
  }
  if (framing.payload_bytes == 0 || framing.unit_bytes == 0) {
    throw SimulationError("packets need a payload of at least one byte, in units of at least one");
  }
  if (settings.nodes.reduction_bytes == 0) {
    throw SimulationError("a reduction's time is that of at least one byte, not of none");
  }
  if (settings.virtual_channels) {
    const VirtualChannels& channels = *settings.virtual_channels;
    const std::uint64_t largest =
        std::uint64_t{framing.packets_at_once} *
        (framing.whole_units(framing.payload_bytes) + framing.header_bytes);
    if (channels.count == 0 || framing.packets_at_once == 0 || channels.bytes < largest) {
      throw SimulationError(
          fmt::format("{} virtual channels of {} bytes cannot hold what travels as one: {}",
                      channels.count, channels.bytes,
                      framing.packets_at_once == 0 ? std::string("a whole message")
                                                   : fmt::format("{} bytes", largest)));
    }
  }
}

} // namespace

ScheduleResult run_schedule(const plan::Topology& topology, const plan::Schedule& schedule,
                            std::uint64_t bytes, const ScheduleSettings& settings) {
  require_sensible(schedule, settings);
  if (settings.virtual_channels) {
    return Run<CreditFabric>(topology, schedule, bytes, settings, *settings.virtual_channels).run();
  }
  return Run<FifoFabric>(topology, schedule, bytes, settings).run();
}

ScheduleSettings multitree_settings() {
  ScheduleSettings settings;
  settings.nodes.reduction_time = 16 * kNanosecond;
  settings.nodes.reduction_bytes = 16 * 32 * 4;
  settings.nodes.interface_latency = 6 * kNanosecond;
  settings.nodes.routing_latency = 4 * kNanosecond;
  settings.nodes.channel_latency = 1 * kNanosecond;
  settings.nodes.handing_over = 1 * kNanosecond;
  settings.nodes.channel_choice = NodeTraits::ChannelChoice::lowest;
  return settings;
}

} // namespace weir::netsim
