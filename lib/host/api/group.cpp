// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/group.hpp"

#include "host/api/device.hpp"
#include "host/api/group_driver.hpp"
#include "host/api/group_opening.hpp"
#include "host/api/group_split.hpp"
#include "host/api/group_succession.hpp"
#include "host/api/region.hpp"
#include "host/api/region_formation.hpp"
#include "host/api/request.hpp"
#include "host/api/transport_options.hpp"
#include "host/collective/sparse_all_reduce.hpp"
#include "program/digest.hpp"
#include "program/operator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace weir::host {
namespace {

constexpr std::size_t kMaxTensorBytes = PTRDIFF_MAX;

/// So many parts of so many bytes, without what lies between them.
std::vector<std::uint8_t> packed(const std::uint8_t* from, std::size_t bytes, std::size_t stride,
                                 std::size_t parts) {
  std::vector<std::uint8_t> whole(parts * bytes);
  for (std::size_t at = 0; bytes != 0 && at < parts; ++at) {
    std::copy_n(from + at * stride, bytes, whole.data() + at * bytes);
  }
  return whole;
}

/// Absent elements are 0, which must not change others. In min, max, product and and they would.
void check(const SparseTensor& tensor, const Call& call) {
  const bool has_meaning = call.operation == Operation::sum ||
                           call.operation == Operation::bitwise_or ||
                           call.operation == Operation::bitwise_xor;
  if (!has_meaning) {
    throw std::invalid_argument(
        fmt::format("operation: found {} of sparse tensors; allowed: sum, average, or, xor, whose "
                    "results do not change by elements that are absent",
                    name_of(call.operation)));
  }
  if (tensor.block > kMostBlock) {
    throw std::invalid_argument(
        fmt::format("block_elements: found {}; allowed: 0 .. {}", tensor.block, kMostBlock));
  }
  if (const std::uint64_t units = units_of(tensor.count, tensor.unit()); units > kMostUnits) {
    throw std::invalid_argument(
        fmt::format("count: found {} elements, {} indices; allowed: {} indices", tensor.count,
                    units, kMostUnits));
  }
}

} // namespace

/// A callback of the request's may end the Pending meanwhile.
bool Pending::test() {
  const std::shared_ptr<Request> request = request_;
  return !request || request->driver->test(*request);
}

void Pending::wait() {
  if (request_) {
    request_->driver->wait_until(*request_, Deadline::max());
  }
}

bool Pending::wait_for(std::chrono::milliseconds timeout) {
  return !request_ ||
         request_->driver->wait_until(*request_, deadline_after(Clock::now(), timeout));
}

void Pending::on_done(DoneCallback callback) {
  if (const std::shared_ptr<Request> request = request_) {
    request->driver->on_done(request, std::move(callback));
  } else {
    callback(std::nullopt);
  }
}

bool Pending::is_over() const {
  return !request_ || request_->driver->is_over(*request_);
}

/// Another thread may end the Pending meanwhile.
bool Pending::cancel() {
  const std::shared_ptr<Request> request = request_;
  return !request || request->driver->cancel(request);
}

std::size_t Pending::bytes_done() const {
  return request_ ? request_->job.bytes_done.load(std::memory_order_relaxed) : 0;
}

std::string Pending::waits_for() const {
  return request_ ? request_->driver->waits_for() : std::string();
}

Group::Group(const GroupOptions& options)
    : driver_(form(open_group(Device(options).named_by(options), [](const GroupOptions& group) {
        return Device(group).open_transport(group);
      }))) {}

Group::Group(const GroupOptions& options, Device& device)
    : driver_(form(open_group(device.named_by(options), [&](const GroupOptions& group) {
        return device.open_transport(group);
      }))) {}

Group::Group(const GroupOptions& options, std::unique_ptr<FrameIo> frames)
    : driver_(form(open_group(options, [&](const GroupOptions& group) {
        return open_software_transport(group, std::move(frames));
      }))) {}

Group::Group(const GroupOptions& options, std::unique_ptr<Transport> transport)
    : driver_(form(open_group(
          options, [&](const GroupOptions& /*group*/) { return std::move(transport); }))) {}

Group::Group(std::shared_ptr<GroupDriver> driver, std::vector<std::uint16_t> parent_ranks)
    : driver_(std::move(driver)), parent_ranks_(std::move(parent_ranks)) {}

Group::Group(Group&&) noexcept = default;

Group Group::shrink(const GroupOptions& options, Device& device) {
  Succession next = succeed(*driver_, device.named_by(options), [&](const GroupOptions& shrunk) {
    return device.open_transport(shrunk);
  });
  return {std::move(next.driver), std::move(next.parent_ranks)};
}

Group Group::shrink(const GroupOptions& options, std::unique_ptr<FrameIo> frames) {
  Succession next = succeed(*driver_, options, [&](const GroupOptions& shrunk) {
    return open_software_transport(shrunk, std::move(frames));
  });
  return {std::move(next.driver), std::move(next.parent_ranks)};
}

void Group::gather_notes(const void* in, std::size_t bytes, void* out) {
  start(in, out, {.kind = CallKind::all_gather, .count = bytes, .type = DataType::u8}).wait();
}

std::optional<Group> Group::split(const SplitPlace& place, const GroupOptions& options,
                                  Device& device) {
  Succession part = host::split(
      *driver_, device.named_by(options), place,
      [this](const void* in, std::size_t bytes, void* out) { gather_notes(in, bytes, out); },
      [&](const GroupOptions& group) { return device.open_transport(group); });
  return part.driver ? std::optional(Group(std::move(part.driver), std::move(part.parent_ranks)))
                     : std::nullopt;
}

std::optional<Group> Group::split(const SplitPlace& place, const GroupOptions& options,
                                  std::unique_ptr<FrameIo> frames) {
  Succession part = host::split(
      *driver_, options, place,
      [this](const void* in, std::size_t bytes, void* out) { gather_notes(in, bytes, out); },
      [&](const GroupOptions& group) { return open_software_transport(group, std::move(frames)); });
  return part.driver ? std::optional(Group(std::move(part.driver), std::move(part.parent_ranks)))
                     : std::nullopt;
}

std::shared_ptr<Region> Group::form_region(std::span<std::uint8_t> memory,
                                           const RegionOptions& options, Device& device) {
  const GroupOptions& own = driver_->options();
  const RegionMakers makers{
      .options = own,
      .ends = driver_->region_ends(),
      .gather = [this](const void* in, std::size_t bytes,
                       void* out) { gather_notes(in, bytes, out); },
      .broadcast =
          [this](std::span<std::uint8_t> bytes) {
            start(bytes.data(), bytes.data(),
                  {.kind = CallKind::broadcast, .count = bytes.size(), .type = DataType::u8})
                .wait();
          },
      .open_link =
          [&](std::uint32_t reads) { return device.open_region_link(own, memory, reads); }};
  return host::form_region(makers, memory, options);
}

/// The group may be over, and then no rank waits.
void Group::close_region(Region& region) {
  std::optional<Pending> others;
  const auto all_have_come = [&] {
    try {
      if (!others) {
        others = start(nullptr, nullptr, {.kind = CallKind::barrier, .type = DataType::f32});
      }
      return others->test();
    } catch (const Error&) {
      return true;
    }
  };
  region.close(all_have_come);
}

Group::~Group() {
  if (!driver_) {
    return;
  }
  if (driver_->is_here()) {
    driver_->close();
    return;
  }
  GroupDriver::keep_for_ever(std::move(driver_));
}

void Group::check(const Call& call) const {
  if (call.reduces() && !is_reducible(call.type, call.operation)) {
    throw std::invalid_argument(
        fmt::format("{} of {} has no meaning", name_of(call.operation), name_of(call.type)));
  }
  if (call.finish == Finish::average && !(call.reduces() && call.operation == Operation::sum)) {
    throw std::invalid_argument(fmt::format("{}: only a sum has an average", describe(call)));
  }
  if (element_size(call.type) == 0) {
    throw std::invalid_argument(fmt::format("type: found {}; allowed: 0 .. {}",
                                            static_cast<int>(call.type), kDataTypes - 1));
  }
  if (call.has_root() && call.root >= world()) {
    throw std::invalid_argument(
        fmt::format("root: found {}; allowed: 0 .. {}", call.root, world() - 1));
  }
  if (const std::size_t most = kMaxTensorBytes / element_size(call.type) / world();
      call.count > most) {
    throw std::invalid_argument(fmt::format("count: found {}; allowed: 0 .. {} of {}", call.count,
                                            most, name_of(call.type)));
  }
}

Pending Group::start(const void* in, void* out, const Call& call) {
  check(call);
  if (call.is_sparse()) {
    throw std::invalid_argument("a sparse all-reduce has indices; allowed: start_sparse");
  }
  auto request = std::make_shared<Request>();
  request->job.buffers = {.in = static_cast<const std::uint8_t*>(in),
                          .out = static_cast<std::uint8_t*>(out)};
  return Pending(driver_->start(std::move(request), call));
}

Pending Group::start_all_reduce(std::span<const Part> parts, Call call) {
  std::vector<TensorList::Tensor> tensors;
  call.kind = CallKind::all_reduce;
  call.count = 0;
  for (const Part& part : parts) {
    check({.count = part.count, .type = call.type, .operation = call.operation});
    tensors.push_back({static_cast<const std::uint8_t*>(part.in),
                       static_cast<std::uint8_t*>(part.out), part.count * element_size(call.type)});
    call.count += part.count;
  }
  check(call);
  auto request = std::make_shared<Request>();
  request->job.buffers.list = &request->tensors.emplace(std::move(tensors));
  return Pending(driver_->start(std::move(request), call));
}

Group::SparseCall Group::start_sparse(const SparseTensor& tensor, Call call,
                                      const std::optional<Factor>& factor) {
  call.kind = CallKind::sparse_all_reduce;
  call.count = tensor.count;
  check(call);
  host::check(tensor, call);
  call.block = static_cast<std::uint16_t>(tensor.block);
  auto request = std::make_shared<Request>();
  request->job.series = &request->sparse.emplace(call, world(), tensor, factor);
  const std::shared_ptr<const SparseOutcome> result = request->sparse->outcome();
  return {Pending(driver_->start(std::move(request), call)), result};
}

void Group::check_by_operator(const Call& call, std::size_t number) const {
  if (const std::size_t operators = options().operators.size(); number >= operators) {
    throw std::invalid_argument(
        fmt::format("operation: found WEIR_OPERATOR({}); allowed: {} of the "
                    "group's operators",
                    number, operators));
  }
  if (!call.reduces() || call.is_sparse()) {
    throw std::invalid_argument(fmt::format(
        "{} by an operator; allowed: all-reduce, reduce, reduce-scatter", name_of(call.kind)));
  }
  if (call.count % kOperatorUnit != 0 || call.count > kMaxTensorBytes / world()) {
    throw std::invalid_argument(
        fmt::format("count: found {}; allowed: 0 .. {} bytes, a multiple of "
                    "{}, as weir_operator_bytes tells",
                    call.count, kMaxTensorBytes / world(), kOperatorUnit));
  }
  if (call.has_root() && call.root >= world()) {
    throw std::invalid_argument(
        fmt::format("root: found {}; allowed: 0 .. {}", call.root, world() - 1));
  }
}

Pending Group::start_by_operator(const void* in, void* out, const Call& call, std::size_t number) {
  check_by_operator(call, number);
  const auto& operators = options().operators;
  auto request = std::make_shared<Request>();
  const OperatorFold fold = driver_->fold_of_operator(number);
  if (fold == OperatorFold::in_switch) {
    const program::MessageLayout messages{options().path_mtu, options().message_bytes};
    request->job.buffers = {.in = static_cast<const std::uint8_t*>(in),
                            .out = static_cast<std::uint8_t*>(out),
                            .cut = messages.message_data()};
    return Pending(driver_->start(std::move(request), call));
  }
  if (fold == OperatorFold::refused && options().fallback == Fallback::none) {
    throw Error(
        ErrorCode::not_aggregated, std::nullopt,
        describe_refused(number, *operators[number]) +
            "; allowed: one that each switch has for this ring's tenant (weirctl load operator, "
            "weirctl show operators), or a fallback to the hosts");
  }
  const OperatorReduce::Tensor tensor{static_cast<const std::uint8_t*>(in),
                                      static_cast<std::uint8_t*>(out)};
  const program::MessageLayout layout{options().path_mtu, options().message_bytes};
  request->job.series = &request->by_operator.emplace(call, Place{rank(), world()}, tensor,
                                                      operators[number], layout);
  return Pending(driver_->start(std::move(request), call));
}

Pending Group::start_scaled(const void* in, void* out, const Call& call, const Factor& factor) {
  check(call);
  if (!call.reduces() || call.operation != Operation::sum) {
    throw std::invalid_argument(fmt::format("{}: only a sum has factors", describe(call)));
  }
  auto request = std::make_shared<Request>();
  const auto* const from = static_cast<const std::uint8_t*>(in);
  auto* const to = static_cast<std::uint8_t*>(out);
  std::span<std::uint8_t> scaled(to, call.shares(world()) * call.count * element_size(call.type));
  const CallRow& row = call.row(); // the result may have less than the input, or go to one rank
  const bool has_room = row.gets == row.brings && row.receives == row.contributes;
  if (!has_room) {
    request->scaled.resize(scaled.size());
    scaled = request->scaled;
  }
  if (from != scaled.data()) {
    std::copy_n(from, scaled.size(), scaled.data());
  }
  multiply(scaled, call.type, factor);
  request->job.buffers = {
      .in = scaled.data(), .out = to, .in_owner = has_room ? Owner::caller : Owner::library};
  return Pending(driver_->start(std::move(request), call));
}

void Group::check_strided(const Call& call, std::size_t stride) const {
  check(call);
  if (call.kind != CallKind::all_gather && call.kind != CallKind::reduce_scatter) {
    throw std::invalid_argument(
        fmt::format("{}: only an all-gather and a reduce-scatter have a stride", describe(call)));
  }
  if (const std::size_t most = kMaxTensorBytes / element_size(call.type) / world();
      stride < call.count || stride > most) {
    throw std::invalid_argument(
        fmt::format("stride: found {}; allowed: {}, the count, .. {}", stride, call.count, most));
  }
}

Pending Group::start_strided(const void* in, void* out, const Call& call, std::size_t stride,
                             const std::optional<Factor>& factor) {
  check_strided(call, stride);
  const bool gathers = call.kind == CallKind::all_gather;
  const std::size_t element = element_size(call.type);
  auto request = std::make_shared<Request>();
  request->job.buffers = {.in = static_cast<const std::uint8_t*>(in),
                          .out = static_cast<std::uint8_t*>(out)};
  if (gathers) {
    request->job.buffers.stride = stride * element;
  } else {
    request->scaled =
        packed(request->job.buffers.in, call.count * element, stride * element, world());
    if (factor) {
      multiply(request->scaled, call.type, *factor);
    }
    request->job.buffers.in = request->scaled.data();
    request->job.buffers.in_owner = Owner::library;
  }
  return Pending(driver_->start(std::move(request), call));
}

Pending Group::start_all_reduce(const void* in, void* out, std::size_t count, DataType type,
                                Operation operation) {
  return start(in, out, {.count = count, .type = type, .operation = operation});
}

void Group::all_reduce(const void* in, void* out, std::size_t count, DataType type,
                       Operation operation) {
  start_all_reduce(in, out, count, type, operation).wait();
}

void Group::progress() {
  driver_->progress();
}

void Group::abort(std::string_view why) {
  driver_->abort(why);
}

std::uint16_t Group::rank() const {
  return driver_->options().rank;
}

std::uint16_t Group::world() const {
  return driver_->options().world;
}

std::uint32_t Group::epoch() const {
  return driver_->epoch();
}

const GroupOptions& Group::options() const {
  return driver_->options();
}

std::uint16_t Group::parent_rank(std::uint16_t rank) const {
  return parent_ranks_.empty() ? rank : parent_ranks_.at(rank);
}

std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
  case Algorithm::in_switch:
    return "switch";
  case Algorithm::ring:
    return "ring";
  case Algorithm::alone:
    return "alone";
  case Algorithm::local:
    return "local";
  }
  return "unknown";
}

std::uint16_t Group::leader(std::uint16_t rank) const {
  return driver_->nodes().leader_of(driver_->nodes().node_of(rank));
}

Algorithm Group::algorithm() const {
  return driver_->algorithm();
}

std::string Group::address() const {
  const std::uint16_t original = driver_->members()[rank()];
  return world() == 1 ? std::string() : driver_->history()->endpoints[original].front().host;
}

std::string Group::fallback_reason() const {
  return driver_->fallback_reason();
}

std::vector<std::uint32_t> Group::rings() const {
  return driver_->used_rings();
}

std::string Group::missing_rings() const {
  return driver_->missing_rings();
}

std::string Group::missing_operators() const {
  return driver_->missing_operators();
}

int Group::descriptor() const {
  return driver_->descriptor();
}

GroupStatistics Group::statistics() const {
  return driver_->statistics();
}

} // namespace weir::host
