// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/c_errors.hpp"
#include "host/api/c_objects.hpp"
#include "host/api/c_options.hpp"
#include "host/api/c_structs.hpp"
#include "host/api/group_split.hpp"
#include "host/api/within_callback.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

/// Contexts, memory and the life of groups.

using namespace weir;
using namespace weir::host::c;

namespace {

/// The memory that a caller wants to register.
std::span<std::uint8_t> memory_at(void* address, std::size_t bytes) {
  const std::size_t most = UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(address);
  if (bytes == 0 || bytes > most) {
    throw std::invalid_argument(fmt::format("bytes: found {}; allowed: 1 .. {}", bytes, most));
  }
  return {&object_at(static_cast<std::uint8_t*>(address), "address"), bytes};
}

/// -1 after an error.
template <typename Body>
int descriptor_of(Body body) {
  int descriptor = -1;
  guarded([&] {
    descriptor = body();
    return WEIR_OK;
  });
  return descriptor;
}

/// The part of `place`; `options` NULL: as the whole group's.
weir_status split(weir_group* group, const host::SplitPlace& place,
                  const weir_group_options* options, weir_group** part) {
  host::Group& whole = object_at(group, "group").group;
  host::GroupOptions next = whole.options();
  next.epoch = 0;
  next.ring_ids = host::RingIds::open;
  if (options != nullptr) {
    next = read_options(options, next);
  }
  if (std::optional<host::Group> formed = whole.split(place, next, *group->device)) {
    *part = new weir_group(group->device, std::move(*formed));
  }
  return WEIR_OK;
}

} // namespace

weir_status weir_context_open(const weir_context_options* options, weir_context** context) {
  return guarded([&] {
    object_at(context, "context") = nullptr;
    const host::GroupOptions device = read_options(options);
    if (const std::string defect = host::find_device_defect(device); !defect.empty()) {
      throw std::invalid_argument(defect);
    }
    *context = new weir_context{std::make_shared<host::Device>(device)};
    return WEIR_OK;
  });
}

void weir_context_close(weir_context* context) {
  delete context;
}

weir_status weir_memory_register(weir_context* context, weir_memory_kind kind, void* address,
                                 size_t bytes, weir_memory** memory) {
  return guarded([&] {
    object_at(memory, "memory") = nullptr;
    host::Device& device = *object_at(context, "context").device;
    if (const unsigned number = number_of(kind); number != WEIR_MEMORY_HOST) {
      throw std::invalid_argument(fmt::format(
          "kind: found {}; allowed here: WEIR_MEMORY_HOST; weir_memory_register_dmabuf has another",
          number));
    }
    *memory = new weir_memory{.address = address,
                              .mapped = nullptr,
                              .registered = device.register_memory(memory_at(address, bytes))};
    return WEIR_OK;
  });
}

weir_status weir_memory_register_dmabuf(weir_context* context, const weir_dmabuf* dmabuf,
                                        weir_memory** memory) {
  return guarded([&] {
    object_at(memory, "memory") = nullptr;
    host::Device& device = *object_at(context, "context").device;
    const weir_dmabuf given =
        read_struct("dmabuf", dmabuf, {.size = 0, .fd = -1, .offset = 0, .bytes = 0});
    const host::DmabufRange range{
        .descriptor = given.fd, .offset = given.offset, .bytes = given.bytes};
    auto mapped = std::make_unique<host::MappedDmabuf>(range);
    auto registered = device.register_dmabuf(range, mapped->bytes());
    void* const address = mapped->bytes().data();
    *memory = new weir_memory{
        .address = address, .mapped = std::move(mapped), .registered = std::move(registered)};
    return WEIR_OK;
  });
}

void* weir_memory_address(const weir_memory* memory) {
  return memory != nullptr ? memory->address : nullptr;
}

void weir_memory_release(weir_memory* memory) {
  delete memory;
}

weir_status weir_group_form(weir_context* context, const weir_group_options* options,
                            weir_group** group) {
  return guarded([&] {
    host::refuse_within_callback("weir_group_form");
    object_at(group, "group") = nullptr;
    const std::shared_ptr<host::Device>& device = object_at(context, "context").device;
    *group = new weir_group(device, host::Group(read_options(options, device->options()), *device));
    return WEIR_OK;
  });
}

weir_status weir_group_shrink(weir_group* group, const weir_group_options* options,
                              weir_group** shrunk) {
  return guarded([&] {
    host::refuse_within_callback("weir_group_shrink");
    object_at(shrunk, "shrunk") = nullptr;
    host::Group& over = object_at(group, "group").group;
    host::GroupOptions next = over.options();
    next.epoch = 0;
    if (options != nullptr) {
      next = read_options(options, next);
    }
    *shrunk = new weir_group(group->device, over.shrink(next, *group->device));
    return WEIR_OK;
  });
}

weir_status weir_group_split(weir_group* group, int32_t colour, int32_t key,
                             const weir_group_options* options, weir_group** part) {
  return guarded([&] {
    host::refuse_within_callback("weir_group_split");
    object_at(part, "part") = nullptr;
    if (colour < 0 && colour != WEIR_NO_COLOUR) {
      throw std::invalid_argument(
          fmt::format("colour: found {}; allowed: WEIR_NO_COLOUR, or 0 and more", colour));
    }
    host::SplitPlace place{.colour = {}, .key = key, .list = {}};
    if (colour != WEIR_NO_COLOUR) {
      place.colour = colour;
    }
    return split(group, place, options, part);
  });
}

weir_status weir_group_select(weir_group* group, const uint16_t* ranks, size_t count,
                              const weir_group_options* options, weir_group** part) {
  return guarded([&] {
    host::refuse_within_callback("weir_group_select");
    object_at(part, "part") = nullptr;
    const host::Group& whole = object_at(group, "group").group;
    if (count != 0) {
      object_at(ranks, "ranks");
    }
    const auto place = host::place_in(std::span(ranks, count), whole.rank(), whole.world());
    return split(group, place, options, part);
  });
}

weir_status weir_group_dup(weir_group* group, const weir_group_options* options,
                           weir_group** copy) {
  return guarded([&] {
    host::refuse_within_callback("weir_group_dup");
    object_at(copy, "copy") = nullptr;
    return split(group, {.colour = 0, .key = 0, .list = {}}, options, copy);
  });
}

int weir_group_parent_rank(const weir_group* group, uint16_t rank) {
  const bool is_known = group != nullptr && rank < group->group.world();
  return is_known ? group->group.parent_rank(rank) : -1;
}

int weir_group_leader(const weir_group* group, uint16_t rank) {
  const bool is_known = group != nullptr && rank < group->group.world();
  return is_known ? group->group.leader(rank) : -1;
}

weir_status weir_group_progress(weir_group* group) {
  return guarded([&] {
    object_at(group, "group").group.progress();
    return WEIR_OK;
  });
}

weir_status weir_group_abort(weir_group* group) {
  return guarded([&] {
    object_at(group, "group").group.abort();
    return WEIR_OK;
  });
}

weir_status weir_group_abort_because(weir_group* group, const char* why) {
  return guarded([&] {
    object_at(group, "group").group.abort(reason_at(why));
    return WEIR_OK;
  });
}

weir_status weir_group_read_statistics(weir_group* group, weir_group_statistics* statistics) {
  return guarded([&] {
    const std::size_t size = size_of("statistics", statistics);
    const host::GroupStatistics counted = object_at(group, "group").group.statistics();
    const weir_group_statistics known{sizeof(weir_group_statistics),
                                      counted.messages_sent,
                                      counted.results_received,
                                      counted.retransmitted_packets.value_or(UINT64_MAX),
                                      counted.ack_timeouts.value_or(UINT64_MAX),
                                      counted.callers_turned_away};
    write_struct(statistics, size, known);
    return WEIR_OK;
  });
}

void weir_group_close(weir_group* group) {
  guarded([&] {
    host::refuse_within_callback("weir_group_close");
    delete group;
    return WEIR_OK;
  });
}

uint16_t weir_group_rank(const weir_group* group) {
  return group != nullptr ? group->group.rank() : 0;
}

uint16_t weir_group_world(const weir_group* group) {
  return group != nullptr ? group->group.world() : 0;
}

uint32_t weir_group_epoch(const weir_group* group) {
  return group != nullptr ? group->group.epoch() : 0;
}

const char* weir_group_algorithm(const weir_group* group) {
  return group != nullptr ? host::name_of(group->group.algorithm()).data() : "";
}

const char* weir_group_fallback_reason(const weir_group* group) {
  return group != nullptr ? group->fallback_reason.c_str() : "";
}

const char* weir_group_address(const weir_group* group) {
  return group != nullptr ? group->address.c_str() : "";
}

size_t weir_group_rings(const weir_group* group, uint32_t* ids, size_t capacity) {
  if (group == nullptr) {
    return 0;
  }
  const std::size_t known = ids == nullptr ? 0 : std::min(capacity, group->rings.size());
  std::copy_n(group->rings.begin(), known, ids);
  return group->rings.size();
}

const char* weir_group_missing_rings(const weir_group* group) {
  return group != nullptr ? group->missing_rings.c_str() : "";
}

const char* weir_group_missing_operators(const weir_group* group) {
  return group != nullptr ? group->missing_operators.c_str() : "";
}

int weir_group_descriptor(weir_group* group) {
  return descriptor_of([&] { return object_at(group, "group").group.descriptor(); });
}

int weir_context_descriptor(weir_context* context) {
  return descriptor_of([&] { return object_at(context, "context").device->descriptor(); });
}
