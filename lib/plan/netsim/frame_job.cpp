// SPDX-License-Identifier: BSD-3-Clause
#include "netsim/frame_job.hpp"

#include "netsim/go_back_switch.hpp"
#include "netsim/mending_switch.hpp"
#include "plan/routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace weir::netsim {
namespace {

constexpr std::uint32_t kInaHeader = 40;   // docs/protocol.md §2
constexpr std::uint32_t kAckExtension = 4; // AETH
constexpr std::uint32_t kElement = 4;      // bytes
constexpr Time kHold = 10 * kMicrosecond;  // RNR timer code 1 (IBTA table 45)

plan::LinkId reverse_of(const plan::Topology& topology, plan::LinkId link) {
  const plan::Link& forth = topology.link(link);
  const auto leads_back = [&](plan::LinkId other) {
    return topology.link(other).from == forth.to && topology.link(other).to == forth.from;
  };
  if (const plan::LinkId twin = link ^ 1; twin < topology.links().size() && leads_back(twin)) {
    return twin;
  }
  const std::span<const plan::LinkId> links = topology.outgoing(forth.to);
  const auto found = std::find_if(links.begin(), links.end(), leads_back);
  if (found == links.end()) {
    throw SimulationError(fmt::format("no link leads from {} back to {}", topology.name(forth.to),
                                      topology.name(forth.from)));
  }
  return *found;
}

/// Adds `bytes` as messages of at most `most`.
void add_cut(MessageList& messages, std::uint64_t bytes, std::uint32_t most) {
  for (; bytes != 0; bytes -= std::min<std::uint64_t>(bytes, most)) {
    messages.add(static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, most)));
  }
}

/// The bytes that a rank is left with after so many halvings. In each the rank's next bit, from the
/// lowest on, says which half it keeps.
std::uint64_t kept_bytes(std::uint32_t rank, std::uint32_t halvings, std::uint64_t bytes) {
  std::uint64_t begin = 0;
  std::uint64_t end = bytes / kElement;
  for (std::uint32_t bit = 0; bit < halvings; ++bit) {
    const std::uint64_t middle = begin + (end - begin) / 2;
    ((rank >> bit & 1) != 0 ? begin : end) = middle;
  }
  return (end - begin) * kElement;
}

} // namespace

/// A ring's part of a switch, with its ports to children and parent.
class FrameJob::Hub : public FoldPorts {
 public:
  Hub(FrameJob& job, std::uint32_t ring, const plan::FabricSwitch& part)
      : job_(job), ring_(ring), part_(part) {
    const WeirSettings& settings = job.settings_;
    const FoldPlace place{
        children_of(part),
        part.parent == plan::kNone ? FoldPlace::Level::root : FoldPlace::Level::below,
        2 * settings.host.window * ((settings.host.message_bytes - 1) / settings.host.mtu + 1)};
    const MessageList& messages = job.rings_[ring].messages.front();
    if (settings.mending == Mending::none) {
      fold_ = std::make_unique<GoBackSwitch>(place, messages, *this);
    } else {
      fold_ = std::make_unique<MendingSwitch>(place, messages, *this, settings.mending_floor);
    }
  }

  std::vector<FoldPlace::Child> children_of(const plan::FabricSwitch& part) const {
    std::vector<FoldPlace::Child> children;
    for (const plan::FabricChild& child : part.children) {
      children.push_back(job_.topology_.is_node(child.vertex) ? FoldPlace::Child::rank
                                                              : FoldPlace::Child::fold_switch);
    }
    return children;
  }

  FoldSwitch& fold() { return *fold_; }

  void take_data(std::uint32_t child, std::uint32_t packet) {
    if (child == kNobody) {
      fold_->take_total(packet, job_.now_);
    } else {
      fold_->take_contribution(child, packet, job_.now_);
    }
  }

  FoldSwitch::Passage see_answer(std::uint32_t child, const Frame& frame) {
    return child == kNobody ? fold_->see_answer_from_above(frame.kind, frame.packet, job_.now_)
                            : fold_->see_answer_of(child, frame.kind, frame.packet, job_.now_);
  }

  void send_down(std::uint32_t child, std::uint32_t packet, Press press) override {
    const plan::FabricChild& port = part_.children[child];
    send_data(rank_before(port.first_rank), packet, press, port.down);
  }

  void send_up(std::uint32_t packet) override {
    send_data(last_rank(part_.first_rank, part_.rank_count), packet, Press::normal, part_.up);
  }

  void answer_down(std::uint32_t child, Frame::Kind kind, std::uint32_t packet) override {
    const plan::FabricChild& port = part_.children[child];
    send_answer(last_rank(port.first_rank, port.rank_count), kind, packet);
  }

  void answer_up(Frame::Kind kind, std::uint32_t packet) override {
    send_answer(rank_before(part_.first_rank), kind, packet);
  }

 private:
  std::uint32_t rank_before(std::uint32_t rank) const {
    return rank == 0 ? job_.rings_[ring_].world - 1 : rank - 1;
  }

  static std::uint32_t last_rank(std::uint32_t first, std::uint32_t count) {
    return first + count - 1;
  }

  void send_data(std::uint32_t rank, std::uint32_t packet, Press press, plan::LinkId link) {
    const MessageList& messages = job_.rings_[ring_].messages.front();
    const std::uint32_t message = messages.message_of(packet);
    const bool asks =
        press == Press::for_acknowledgement || packet + 1 == messages.end_of(message) ||
        (packet - messages.first_of(message) + 1) % job_.settings_.host.ack_request_every == 0;
    Frame frame;
    frame.ack = asks ? Sender::Departure::Ack::asked : Sender::Departure::Ack::not_asked;
    frame.ring = ring_;
    frame.rank = rank;
    frame.packet = packet;
    frame.bytes = messages.bytes_of(packet, message) + job_.settings_.host.frame_overhead;
    job_.network_.send(frame, link, job_.now_);
  }

  /// Sends an answer along the rest of the connection's way back.
  void send_answer(std::uint32_t rank, Frame::Kind kind, std::uint32_t packet) {
    const Worker& receiver = job_.worker_of(job_.rings_[ring_], rank + 1);
    Frame frame;
    frame.kind = kind;
    frame.ring = ring_;
    frame.rank = rank;
    frame.packet = packet;
    frame.bytes = kAckExtension + job_.settings_.host.frame_overhead;
    frame.end = receiver.way_back.data() + receiver.way_back.size();
    frame.hop = std::find_if(receiver.way_back.data(), frame.end, [&](plan::LinkId link) {
      return job_.topology_.link(link).from == part_.vertex;
    });
    job_.network_.send(frame, *frame.hop, job_.now_);
  }

  FrameJob& job_;
  const std::uint32_t ring_;
  const plan::FabricSwitch part_;
  std::unique_ptr<FoldSwitch> fold_;
};

FrameJob::FrameJob(const plan::Topology& topology, const WeirSettings& settings, std::uint64_t seed)
    : topology_(topology), settings_(settings), network_(topology, settings, seed) {}

FrameJob::~FrameJob() = default;

void FrameJob::add_folded_ring(const plan::FabricRing& fabric, std::uint64_t bytes) {
  const auto index = static_cast<std::uint32_t>(rings_.size());
  Ring& ring = rings_.emplace_back();
  ring.world = static_cast<std::uint32_t>(fabric.members.size());
  ring.members = fabric.members;
  MessageList& messages = ring.messages.emplace_back(settings_.host.mtu);
  const std::uint32_t data = settings_.host.message_bytes - kInaHeader;
  for (std::uint64_t left = bytes; left != 0; left -= std::min<std::uint64_t>(left, data)) {
    messages.add(static_cast<std::uint32_t>(std::min<std::uint64_t>(left, data)) + kInaHeader);
  }
  add_workers(ring, index);
  for (std::uint32_t rank = 0; rank < ring.world; ++rank) {
    Worker& worker = worker_of(ring, rank);
    worker.lead = settings_.host.window;
    worker.end = Worker::End::arrived_and_acknowledged;
  }
  add_hubs(fabric, index);
  set_ways(fabric, index);
}

/// Hosts whose switches only forward.
FrameJob::Ring& FrameJob::add_hosts(std::span<const plan::VertexId> order) {
  Ring& ring = rings_.emplace_back();
  ring.world = static_cast<std::uint32_t>(order.size());
  ring.members.assign(order.begin(), order.end());
  ring.hub_at.assign(topology_.vertex_count(), kNobody);
  return ring;
}

/// In step s, rank r sends chunk r-s. A chunk is cut into messages.
void FrameJob::add_host_ring(std::span<const plan::VertexId> order, std::uint64_t bytes) {
  const auto index = static_cast<std::uint32_t>(rings_.size());
  Ring& ring = add_hosts(order);
  const std::uint64_t elements = bytes / kElement;
  std::vector<std::uint32_t> leads;
  for (std::uint32_t rank = 0; rank < ring.world; ++rank) {
    MessageList& messages = ring.messages.emplace_back(settings_.host.mtu);
    for (std::uint32_t step = 0; step < 2 * (ring.world - 1); ++step) {
      const std::uint64_t chunk = (rank + 2 * std::uint64_t{ring.world} - step) % ring.world;
      add_cut(messages,
              ((chunk + 1) * elements / ring.world - chunk * elements / ring.world) * kElement,
              settings_.host.message_bytes);
      if (step == 0) {
        leads.push_back(messages.count());
      }
    }
  }
  add_workers(ring, index);
  for (std::uint32_t rank = 0; rank < ring.world; ++rank) {
    worker_of(ring, rank).lead = leads[rank];
  }
  set_shortest_ways(ring);
}

void FrameJob::set_shortest_ways(const Ring& ring) {
  plan::Router router(topology_);
  for (std::uint32_t rank = 0; rank < ring.world; ++rank) {
    Worker& worker = worker_of(ring, rank);
    const plan::VertexId own = ring.members[rank];
    worker.way = router.route(own, ring.members[(rank + 1) % ring.world]);
    worker.uplink = worker.way.front();
    worker.way_back = router.route(own, ring.members[(rank + ring.world - 1) % ring.world]);
  }
}

/// A ring of two. Returns its first worker.
std::uint32_t FrameJob::add_exchange(const Exchange& exchange) {
  const auto index = static_cast<std::uint32_t>(rings_.size());
  Ring& ring = add_hosts(exchange.hosts);
  for (const std::uint64_t bytes : exchange.bytes) {
    add_cut(ring.messages.emplace_back(settings_.host.mtu), bytes, settings_.host.message_bytes);
  }
  add_workers(ring, index);
  for (std::uint32_t rank = 0; rank < ring.world; ++rank) {
    Worker& worker = worker_of(ring, rank);
    worker.lead = worker.to_send;
  }
  set_shortest_ways(ring);
  return ring.first_worker;
}

/// A stage's partners differ in one bit of their ranks, from the lowest up: neighbours exchange
/// halves of the tensor, and those who are far apart small pieces. Doubling goes the same way back.
/// A stage begins when the one before has come.
void FrameJob::add_halving_doubling(std::span<const plan::VertexId> order, std::uint64_t bytes) {
  const auto world = static_cast<std::uint32_t>(order.size());
  const auto halvings = static_cast<std::uint32_t>(std::countr_zero(world));
  std::vector<std::uint32_t> before(world, kNobody); // each rank's worker in the last stage
  for (std::uint32_t stage = 0; stage < 2 * halvings; ++stage) {
    const std::uint32_t bit = stage < halvings ? stage : 2 * halvings - 1 - stage;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      const std::uint32_t partner = rank ^ (1U << bit);
      if (partner < rank) {
        continue;
      }
      // Halving: what the partner keeps. Doubling: what was kept.
      const std::uint64_t low = kept_bytes(rank, bit + 1, bytes);
      const std::uint64_t high = kept_bytes(partner, bit + 1, bytes);
      const std::uint32_t first =
          add_exchange({{order[rank], order[partner]},
                        stage < halvings ? std::array{high, low} : std::array{low, high}});
      open_after(before[rank], first);
      open_after(before[partner], first + 1);
      before[rank] = first;
      before[partner] = first + 1;
    }
  }
}

void FrameJob::open_after(std::uint32_t earlier, std::uint32_t later) {
  if (earlier != kNobody) {
    workers_[earlier].opens = later;
    workers_[later].gate = Worker::Gate::closed;
  }
}

void FrameJob::add_workers(Ring& ring, std::uint32_t index) {
  ring.first_worker = static_cast<std::uint32_t>(workers_.size());
  const std::size_t lists = ring.messages.size();
  for (std::uint32_t rank = 0; rank < ring.world; ++rank) {
    const std::uint32_t before = rank == 0 ? ring.world - 1 : rank - 1;
    Worker& worker = workers_.emplace_back(settings_.host, ring.messages[rank % lists],
                                           ring.messages[before % lists]);
    worker.room = 2 * settings_.host.window;
    worker.ring = index;
    worker.rank = rank;
  }
}

void FrameJob::add_hubs(const plan::FabricRing& fabric, std::uint32_t index) {
  Ring& ring = rings_[index];
  ring.hub_at.assign(topology_.vertex_count(), kNobody);
  ring.child_at.assign(topology_.links().size(), kNobody);
  for (const plan::FabricSwitch& part : fabric.switches) {
    ring.hub_at[part.vertex] = static_cast<std::uint32_t>(hubs_.size());
    hubs_.push_back(std::make_unique<Hub>(*this, index, part));
    lcores_[part.vertex].assign(settings_.costs.lcores, 0);
    for (std::uint32_t child = 0; child < part.children.size(); ++child) {
      const plan::FabricChild& port = part.children[child];
      const plan::LinkId up = reverse_of(topology_, port.down);
      ring.child_at[up] = child;
      if (topology_.is_node(port.vertex)) {
        worker_of(ring, port.first_rank).uplink = up;
      }
    }
  }
}

/// Both directions of a connection follow the tree.
void FrameJob::set_ways(const plan::FabricRing& fabric, std::uint32_t index) {
  Ring& ring = rings_[index];
  // Each rank's links from the root to it.
  std::vector<std::vector<plan::LinkId>> from_root(ring.world);
  for (const plan::FabricSwitch& part : fabric.switches) { // depth first
    for (const plan::FabricChild& child : part.children) {
      for (std::uint32_t rank = child.first_rank; rank < child.first_rank + child.rank_count;
           ++rank) {
        from_root[rank].push_back(child.down);
      }
    }
  }
  for (std::uint32_t rank = 0; rank < ring.world; ++rank) {
    const std::vector<plan::LinkId>& own = from_root[rank];
    const std::vector<plan::LinkId>& other = from_root[rank == 0 ? ring.world - 1 : rank - 1];
    std::size_t common = 0;
    while (common < own.size() && common < other.size() && own[common] == other[common]) {
      ++common;
    }
    std::vector<plan::LinkId>& way = worker_of(ring, rank).way_back;
    for (std::size_t i = own.size(); i > common; --i) {
      way.push_back(reverse_of(topology_, own[i - 1]));
    }
    way.insert(way.end(), other.begin() + static_cast<std::ptrdiff_t>(common), other.end());
  }
}

FrameJob::Outcome FrameJob::run() {
  for (std::uint32_t hub = 0; hub < hubs_.size(); ++hub) {
    if (const Time interval = hubs_[hub]->fold().interval(); interval != kNever) {
      network_.events().push(interval, {FrameEventKind::look, hub});
    }
  }
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    interfaces_[workers_[worker].uplink].workers.push_back(worker);
  }
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    pump(worker);
  }
  while (done_ != workers_.size() && !has_failed_) {
    if (network_.events().empty() || now_ > kTimeout) {
      throw SimulationError(fmt::format("after {} s {} of {} ranks have not finished",
                                        now_ / kSecond, workers_.size() - done_, workers_.size()));
    }
    const auto entry = network_.events().pop();
    network_.prefetch_soon();
    now_ = entry.time;
    dispatch(entry.event);
  }
  return has_failed_ ? Outcome::failed : Outcome::finished;
}

void FrameJob::dispatch(const FrameEvent& event) {
  switch (event.kind) {
  case FrameEventKind::arrival:
    arrive(event.subject, event.detail);
    break;
  case FrameEventKind::attended: {
    const Frame frame = network_[event.subject];
    network_.release(event.subject);
    attend(frame, event.detail);
    break;
  }
  case FrameEventKind::worker: {
    Worker& worker = workers_[event.subject];
    if (worker.timer == now_) { // else it was set again
      worker.timer = kNever;
      worker.sender.expire(now_);
      pump(event.subject);
    }
    break;
  }
  case FrameEventKind::link_free:
    interfaces_[event.subject].call = Interface::Call::none;
    send_in_turn(event.subject);
    break;
  case FrameEventKind::look:
    hubs_[event.subject]->fold().look_again(now_);
    network_.events().push(now_ + hubs_[event.subject]->fold().interval(), event);
    break;
  }
}

void FrameJob::arrive(FrameId id, plan::LinkId link) {
  const Frame frame = network_[id];
  const plan::VertexId vertex = topology_.link(link).to;
  const bool ends_here = frame.hop == nullptr || frame.hop + 1 == frame.end;
  if (topology_.is_node(vertex) && ends_here) {
    network_.release(id);
    return deliver(frame);
  }
  const bool is_folded = rings_[frame.ring].hub_at[vertex] != kNobody;
  if (is_folded && frame.kind == Frame::Kind::data) {
    const Time ready = attended_at(vertex);
    if (ready != now_) {
      network_.events().push(ready, {FrameEventKind::attended, id, link});
      return;
    }
  }
  network_.release(id);
  if (is_folded) {
    attend(frame, link);
  } else {
    forward(frame);
  }
}

/// When an lcore has finished a packet that comes now; the first free lcore takes it.
Time FrameJob::attended_at(plan::VertexId vertex) {
  const SwitchCosts& costs = settings_.costs;
  if (costs.packet_time == 0) {
    return now_ + costs.latency;
  }
  std::vector<Time>& lcores = lcores_[vertex];
  Time& first = *std::min_element(lcores.begin(), lcores.end());
  first = std::max(first, now_) + costs.packet_time;
  return first + costs.latency;
}

void FrameJob::attend(const Frame& frame, plan::LinkId link) {
  const Ring& ring = rings_[frame.ring];
  Hub& hub = *hubs_[ring.hub_at[topology_.link(link).to]];
  const std::uint32_t child = ring.child_at[link];
  if (frame.kind == Frame::Kind::data) {
    hub.take_data(child, frame.packet);
  } else if (hub.see_answer(child, frame) == FoldSwitch::Passage::on) {
    forward(frame);
  }
}

void FrameJob::forward(Frame frame) {
  ++frame.hop;
  network_.send(frame, *frame.hop, now_);
}

void FrameJob::deliver(const Frame& frame) {
  const Ring& ring = rings_[frame.ring];
  if (frame.kind == Frame::Kind::data) {
    Worker& worker = worker_of(ring, frame.rank + 1);
    answer(frame, worker.receiver.receive(frame.packet, frame.ack));
    return pump(ring.first_worker + worker.rank);
  }
  Worker& worker = worker_of(ring, frame.rank);
  switch (frame.kind) {
  case Frame::Kind::acknowledgement:
    worker.sender.acknowledge(frame.packet, now_);
    break;
  case Frame::Kind::refusal:
    worker.sender.refuse(frame.packet, now_);
    break;
  default:
    worker.sender.hold(frame.packet, kHold, now_);
  }
  pump(ring.first_worker + worker.rank);
}

void FrameJob::answer(const Frame& frame, Receiver::Reply reply) {
  if (reply == Receiver::Reply::none) {
    return;
  }
  const Worker& worker = worker_of(rings_[frame.ring], frame.rank + 1);
  Frame answer;
  answer.kind =
      reply == Receiver::Reply::refuse ? Frame::Kind::refusal : Frame::Kind::acknowledgement;
  answer.ring = frame.ring;
  answer.rank = frame.rank;
  answer.packet = worker.receiver.expected();
  answer.bytes = kAckExtension + settings_.host.frame_overhead;
  answer.hop = worker.way_back.data();
  answer.end = worker.way_back.data() + worker.way_back.size();
  network_.send(answer, *answer.hop, now_);
}

void FrameJob::open(std::uint32_t index) {
  workers_[index].gate = Worker::Gate::open;
  pump(index);
}

/// Does all that the worker can do now.
void FrameJob::pump(std::uint32_t index) {
  Worker& worker = workers_[index];
  worker.post_all();
  if (settings_.host.choice == HostTraits::Choice::at_once) {
    send_all(index);
  } else {
    send_in_turn(worker.uplink);
  }
  set_timer(index);
  has_failed_ = has_failed_ || worker.sender.has_failed();
  if (worker.opens != kNobody && worker.has_everything()) {
    open(std::exchange(worker.opens, kNobody));
  }
  if (!worker.was_done && worker.is_done()) {
    worker.was_done = true;
    ++done_;
  }
}

void FrameJob::send_all(std::uint32_t index) {
  while (send_next(index)) {
  }
}

/// Sends one packet if the link is free.
void FrameJob::send_in_turn(plan::LinkId link) {
  Interface& interface = interfaces_[link];
  if (interface.call == Interface::Call::pending) {
    return;
  }
  if (network_.free_from(link) > now_) {
    return call_when_free(link);
  }
  const std::size_t count = interface.workers.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t worker = interface.workers[(interface.turn + i) % count];
    if (send_next(worker)) {
      interface.turn = (interface.turn + i + 1) % count;
      set_timer(worker);
      return call_when_free(link);
    }
  }
}

void FrameJob::call_when_free(plan::LinkId link) {
  interfaces_[link].call = Interface::Call::pending;
  network_.events().push(network_.free_from(link), {FrameEventKind::link_free, link});
}

/// Returns whether there was one.
bool FrameJob::send_next(std::uint32_t index) {
  Worker& worker = workers_[index];
  const auto departure = worker.sender.transmit(now_);
  if (!departure) {
    return false;
  }
  Frame frame;
  frame.ack = departure->ack;
  frame.ring = worker.ring;
  frame.rank = worker.rank;
  frame.packet = departure->packet;
  frame.bytes = worker.sender.messages().bytes_of(departure->packet, departure->message) +
                settings_.host.frame_overhead;
  if (!worker.way.empty()) {
    frame.hop = worker.way.data();
    frame.end = worker.way.data() + worker.way.size();
  }
  network_.send(frame, worker.uplink, now_);
  return true;
}

void FrameJob::set_timer(std::uint32_t index) {
  Worker& worker = workers_[index];
  if (const Time deadline = worker.sender.deadline(); deadline < worker.timer) {
    worker.timer = deadline;
    network_.events().push(deadline, {FrameEventKind::worker, index});
  }
}

WeirResult FrameJob::result() const {
  WeirResult result;
  result.duration = now_;
  for (const Worker& worker : workers_) {
    result.frames += worker.sender.sent();
    result.repeats += worker.sender.repeats();
  }
  result.lost = network_.lost();
  for (const auto& hub : hubs_) {
    result.slots = std::max(result.slots, hub->fold().most_filling());
  }
  result.links = network_.use();
  result.events = network_.events().pushed();
  return result;
}

} // namespace weir::netsim
