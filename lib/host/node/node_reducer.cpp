// SPDX-License-Identifier: BSD-3-Clause
#include "host/node/node_reducer.hpp"

#include "host/base/control_note.hpp"
#include "host/base/error.hpp"
#include "op/float_environment.hpp"
#include "op/kernel.hpp"
#include "weir/ina.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>

namespace weir::host {
namespace {

// A shorter portion is folded by one rank: to hear of the others' shares takes longer than to fold.
constexpr std::size_t kLeastShared = 16'384;

const std::byte* bytes_at(const std::uint8_t* data) {
  return reinterpret_cast<const std::byte*>(data);
}

std::byte* bytes_at(std::uint8_t* data) {
  return reinterpret_cast<std::byte*>(data);
}

/// Differs for portions of different calls, and for different parts of one, but for one in 2^64.
std::uint64_t label_of(const Portion& portion) {
  struct Parts {
    CallBody call;
    wire::be64 bytes;
    wire::be64 offset;
    wire::be16 segment;
  };

  const Parts parts{encode(portion.slice->call), wire::be64(portion.bytes),
                    wire::be64(portion.offset), wire::be16(portion.segment)};
  std::uint64_t label = 0xcbf29ce484222325; // FNV-1a (draft-eastlake-fnv), 64 bits
  for (const std::uint8_t byte : bytes_of(parts)) {
    label = (label ^ byte) * 0x100000001b3;
  }
  return label;
}

} // namespace

NodeReducer::NodeReducer(const NodeMap& nodes, std::uint16_t rank, std::unique_ptr<Reducer> between)
    : nodes_(nodes), rank_(rank), node_(nodes.node_of(rank)), ranks_(nodes_.ranks_of(node_)),
      place_(nodes.place_of(rank)), between_(std::move(between)) {
  assert(!between_ || (place_ == 0 && nodes_.nodes() > 1));
}

void NodeReducer::join(NodeMemory& memory, std::size_t channel) {
  memory_ = &memory;
  channel_ = channel;
  for (std::uint16_t place = 0; place < ranks(); ++place) {
    counters_.push_back(&memory.counters(channel, place));
  }
  queue_ = PortionQueue(memory.geometry().portion_bytes);
}

void NodeReducer::begin(const Slice& slice) {
  assert(memory_ != nullptr);
  queue_.add(slice);
  memory_->add_slice();
  finish(); // if it is empty
  go_on();
}

void NodeReducer::finish() {
  const std::uint64_t before = queue_.finished();
  queue_.finish_before(taken_);
  memory_->end_slices(queue_.finished() - before);
}

std::optional<OutgoingMessage> NodeReducer::next() {
  if (memory_ != nullptr) {
    go_on();
  }
  return between_ ? between_->next() : std::nullopt;
}

/// To the reducer between nodes a rank is a node's number.
template <typename Body>
auto NodeReducer::with_ranks(Body&& body) const {
  try {
    return body();
  } catch (const Error& error) {
    if (!error.rank() || *error.rank() >= nodes_.nodes()) {
      throw;
    }
    const std::uint16_t leader = nodes_.leader_of(*error.rank());
    throw Error(error.code(), leader,
                fmt::format("{} (the ring's rank {} is rank {})",
                            static_cast<const char*>(error.what()), *error.rank(), leader));
  }
}

Arrival NodeReducer::accept(const IncomingMessage& message) {
  if (!between_) {
    throw Error(ErrorCode::transport_failure, std::nullopt,
                fmt::format("message {} came to rank {}, which has no connection",
                            message.immediate, rank_));
  }
  const Arrival arrival = with_ranks([&] { return between_->accept(message); });
  note_exchanged();
  return arrival;
}

void NodeReducer::complete() {
  between_->complete();
  note_exchanged();
}

bool NodeReducer::is_idle() const {
  return queue_.is_empty() && (!between_ || between_->is_idle());
}

std::string NodeReducer::describe() const {
  if (queue_.is_empty()) {
    return between_ ? between_->describe() : std::string("no call is under way");
  }
  const Portion portion = queue_.portion(taken_);
  std::vector<std::uint16_t> not_brought;
  std::vector<std::uint16_t> not_folded;
  for (std::uint16_t place = 0; place < ranks(); ++place) {
    if (counters_[place]->brought.load(std::memory_order_acquire) <= taken_) {
      not_brought.push_back(ranks_[place]);
    }
    if (lacks_share(portion, taken_, place)) {
      not_folded.push_back(ranks_[place]);
    }
  }
  std::string text = fmt::format("part {} of {} at one NIC", taken_, named(ranks_));
  if (!not_brought.empty()) {
    text += fmt::format(", to which {} did not bring data", named(not_brought));
  } else if (!not_folded.empty()) {
    text += fmt::format(", which {} did not fold", named(not_folded));
  }
  return between_ ? fmt::format("{}; {}", text, between_->describe()) : text;
}

// ----------------------------------------------------------------------------------------- steps

void NodeReducer::go_on() {
  has_moved_ = false;
  bring();
  fold();
  exchange();
  take();
  if (std::exchange(has_news_, false)) {
    memory_->announce();
  }
  if (has_moved_) {
    memory_->note_move();
  }
}

/// What the rank does of a portion's sum. Of a reduction all do something if that is worth it.
NodeReducer::Range NodeReducer::share_of(const Portion& portion, std::uint16_t place) const {
  switch (portion.slice->collective) {
  case Collective::all_reduce:
    if (portion.bytes < kLeastShared) {
      return {0, place == 0 ? portion.bytes : 0};
    }
    return {share_begin(portion.bytes, place, ranks()),
            share_begin(portion.bytes, place + std::size_t{1}, ranks())};
  case Collective::broadcast:
    return {0, ranks_[place] == portion.slice->root_of(portion.segment) ? portion.bytes : 0};
  default:
    return {};
  }
}

bool NodeReducer::is_brought(std::uint64_t number) const {
  return std::ranges::all_of(counters_, [&](const NodeMemory::Counters* counters) {
    return counters->brought.load(std::memory_order_acquire) > number;
  });
}

/// Whether all that have brought it mean the same. Only until somebody can have taken it. Where
/// they do not, nobody goes on, and rank 0 finds out who called what.
bool NodeReducer::all_mean(const Portion& portion, std::uint64_t number) const {
  const std::uint64_t label = label_of(portion);
  for (std::uint16_t place = 0; place < ranks(); ++place) {
    if (memory_->label(channel_, number, place) != label) {
      return false;
    }
  }
  return true;
}

/// Whether the rank's share of the portion is due and not there.
bool NodeReducer::lacks_share(const Portion& portion, std::uint64_t number,
                              std::uint16_t place) const {
  return !share_of(portion, place).is_empty() &&
         counters_[place]->folded.load(std::memory_order_acquire) <= number;
}

bool NodeReducer::is_folded(const Portion& portion, std::uint64_t number) const {
  for (std::uint16_t place = 0; place < ranks(); ++place) {
    if (lacks_share(portion, number, place)) {
      return false;
    }
  }
  return is_brought(number);
}

bool NodeReducer::is_whole(const Portion& portion, std::uint64_t number) const {
  return nodes_.nodes() == 1 ? is_folded(portion, number)
                             : counters_[0]->exchanged.load(std::memory_order_acquire) > number;
}

std::uint8_t* NodeReducer::own_area(std::uint64_t number) const {
  return memory_->input(channel_, number, place_);
}

/// To the same place in the area.
void NodeReducer::copy_input(const Portion& portion, const Range& range, std::uint8_t* area) {
  if (range.is_empty()) {
    return;
  }
  const std::size_t bytes = range.end - range.begin;
  const std::size_t offset = portion.offset + range.begin;
  if (portion.slice->is_in_one_place(offset, bytes)) {
    std::ranges::copy(portion.slice->source(portion.segment, offset, bytes), area + range.begin);
  } else {
    portion.slice->list->gather(portion.slice->list_begin + offset, {area + range.begin, bytes});
  }
}

/// Our share is read where it lies, if it lies in one place.
void NodeReducer::bring() {
  const std::uint64_t number = brought_;
  if (number == queue_.end() || number >= taken_ + memory_->geometry().slots) {
    return;
  }
  const Portion portion = queue_.portion(number);
  if (portion.slice->collective == Collective::all_reduce) {
    const Range share = share_of(portion, place_);
    const bool is_in_place =
        portion.slice->is_in_one_place(portion.offset + share.begin, share.end - share.begin);
    const std::size_t skipped = is_in_place ? share.end : share.begin;
    copy_input(portion, {0, share.begin}, own_area(number));
    copy_input(portion, {skipped, portion.bytes}, own_area(number));
  }
  memory_->label(channel_, number, place_) = label_of(portion);
  counters_[place_]->brought.store(++brought_, std::memory_order_release);
  has_news_ = has_moved_ = true;
}

void NodeReducer::fold() {
  const std::uint64_t number = folded_;
  if (number == brought_) {
    return;
  }
  const Portion portion = queue_.portion(number);
  const Range share = share_of(portion, place_);
  if (!share.is_empty()) {
    if (!is_brought(number) || !all_mean(portion, number)) {
      return;
    }
    fold_share(portion, number, share);
    has_news_ = true;
  }
  counters_[place_]->folded.store(++folded_, std::memory_order_release);
  has_moved_ = true;
}

const std::uint8_t* NodeReducer::input_of(const Portion& portion, std::uint64_t number,
                                          const Range& share, std::uint16_t place) const {
  const std::size_t offset = portion.offset + share.begin;
  const std::size_t bytes = share.end - share.begin;
  if (place == place_ && portion.slice->is_in_one_place(offset, bytes)) {
    return portion.slice->source(portion.segment, offset, bytes).data();
  }
  return memory_->input(channel_, number, place) + share.begin;
}

void NodeReducer::fold_share(const Portion& portion, std::uint64_t number,
                             const Range& share) const {
  const std::size_t bytes = share.end - share.begin;
  std::uint8_t* const sum = memory_->sum(channel_, number) + share.begin;
  if (portion.slice->collective == Collective::broadcast || ranks() == 1) {
    std::memcpy(sum, input_of(portion, number, share, place_), bytes);
    return;
  }
  std::array<const std::byte*, kMaxWorld> inputs{};
  for (std::uint16_t place = 0; place < ranks(); ++place) {
    inputs[place] = bytes_at(input_of(portion, number, share, place));
  }
  const op::DefaultFloatEnvironment environment; // not the caller's (I8)
  const op::ReduceKernel kernel =
      op::find_kernel(portion.slice->type, portion.slice->operation, op::best_cpu_level());
  const std::span<std::uint8_t> own = own_place(portion, share);
  std::byte* const copy = bytes_at(own.data());
  kernel(bytes_at(sum), inputs.data(), ranks(), bytes, {&copy, own.empty() ? 0U : 1U});
}

/// Where our share of the sum belongs, if it is the result already: with one node, and if all of it
/// is kept in one place. Input there is ours, and in the same place.
std::span<std::uint8_t> NodeReducer::own_place(const Portion& portion, const Range& share) const {
  const bool is_result = nodes_.nodes() == 1 && !share.is_empty() &&
                         portion.slice->collective == Collective::all_reduce;
  return is_result ? portion.slice->target(portion.segment, portion.offset + share.begin,
                                           share.end - share.begin)
                   : std::span<std::uint8_t>();
}

/// Of the leader.
void NodeReducer::exchange() {
  const std::uint64_t number = begun_;
  if (!between_ || number == folded_) {
    return;
  }
  const Portion portion = queue_.portion(number);
  if (!is_folded(portion, number) || !all_mean(portion, number)) {
    return;
  }
  ++begun_;
  with_ranks([&] { between_->begin(slice_between(portion, number)); });
  note_exchanged();
  has_moved_ = true;
}

/// The node's sum, which becomes the total where it is.
Slice NodeReducer::slice_between(const Portion& portion, std::uint64_t number) const {
  Slice slice = *portion.slice;
  const bool has_root = slice.collective == Collective::broadcast;
  slice.root =
      has_root ? nodes_.node_of(portion.slice->root_of(portion.segment)) : std::uint16_t{0};
  slice.rank = node_;
  slice.become_one_segment(portion.bytes);
  slice.in = slice.out = memory_->sum(channel_, number);
  slice.in_owner = slice.out_owner = Owner::library;
  slice.list = nullptr;
  return slice;
}

void NodeReducer::note_exchanged() {
  if (memory_ == nullptr) { // that was the hello
    return;
  }
  const std::uint64_t finished = between_->finished();
  std::atomic<std::uint64_t>& exchanged = counters_[0]->exchanged;
  if (exchanged.load(std::memory_order_relaxed) != finished) {
    exchanged.store(finished, std::memory_order_release);
    memory_->announce();
    memory_->note_move();
  }
}

void NodeReducer::store(const Portion& portion, std::uint64_t number, const Range& range) const {
  if (!range.is_empty()) {
    portion.slice->store(portion.segment, portion.offset + range.begin,
                         {memory_->sum(channel_, number) + range.begin, range.end - range.begin});
  }
}

void NodeReducer::take() {
  const std::uint64_t number = taken_;
  if (number == folded_) {
    return;
  }
  const Portion portion = queue_.portion(number);
  if (!is_whole(portion, number)) {
    return;
  }
  Range own = share_of(portion, place_);
  if (own_place(portion, own).empty()) {
    own = {};
  }
  store(portion, number, {0, own.begin});
  store(portion, number, {own.end, portion.bytes});
  ++taken_;
  finish();
  has_moved_ = true;
}

} // namespace weir::host
