// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What C programs hold pointers to.

#include "host/api/device.hpp"
#include "host/api/forming.hpp"
#include "host/api/group.hpp"
#include "host/api/region.hpp"
#include "host/api/scaled_sums.hpp"
#include "host/collective/sparse_outcome.hpp"
#include "host/rendezvous/listener.hpp"
#include "program/message_layout.hpp"
#include "program/operator.hpp"
#include "weir/weir.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

struct weir_context {
  std::shared_ptr<weir::host::Device> device;
};

struct weir_listener {
  std::shared_ptr<weir::host::Listener> listener;
};

struct weir_memory {
  void* address = nullptr;
  std::unique_ptr<weir::host::MappedDmabuf> mapped; // null: the caller's own
  std::unique_ptr<weir::host::UserMemory> registered;
};

struct weir_group {
  weir_group(std::shared_ptr<weir::host::Device> its_device, weir::host::Group formed)
      : device(std::move(its_device)), group(std::move(formed)),
        fallback_reason(group.fallback_reason()), address(group.address()), rings(group.rings()),
        missing_rings(group.missing_rings()), missing_operators(group.missing_operators()) {
    device->enter(group);
  }

  ~weir_group() { device->leave(group); }

  weir_group(const weir_group&) = delete;
  weir_group& operator=(const weir_group&) = delete;

  std::shared_ptr<weir::host::Device> device; // for a group that is shrunk to
  weir::host::Group group;
  std::string fallback_reason;
  std::string address;
  std::vector<std::uint32_t> rings; // that carry calls
  std::string missing_rings;
  std::string missing_operators;
  weir::host::ScaledSums scaled_sums;
};

struct weir_forming {
  std::shared_ptr<weir::host::Device> device; // the group's
  weir::host::Forming forming;
};

struct weir_region {
  weir_group* group; // whose calls forming and closing are
  std::shared_ptr<weir::host::Region> region;
};

struct weir_request {
  std::variant<weir::host::Pending, weir::host::RegionPending> pending;

  /// With whichever it is.
  template <typename Body>
  auto with_pending(Body body) {
    return std::visit(body, pending);
  }
};

struct weir_persistent {
  using Start = std::function<weir_status(weir_request**)>;

  explicit weir_persistent(std::shared_ptr<weir::host::Device> its_device)
      : device(std::move(its_device)) {}

  const std::shared_ptr<weir::host::Device> device;
  Start start;
  std::vector<std::span<std::uint8_t>> buffers;
  std::mutex mutex;         // guards the rest
  weir::host::Pending last; // of the calls that were started
  std::vector<std::unique_ptr<weir::host::UserMemory>> registered;
};

struct weir_operator {
  std::shared_ptr<const weir::program::Operator> loaded;
  std::string digest;
  weir::program::MessageLayout layout;
};

struct weir_sparse_result {
  std::shared_ptr<const weir::host::SparseOutcome> outcome;
};
