// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/c_calls.hpp"
#include "host/api/c_errors.hpp"
#include "host/api/c_objects.hpp"
#include "host/api/c_options.hpp"
#include "host/api/c_structs.hpp"
#include "host/api/within_callback.hpp"
#include "host/region/region_plan.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

/// Regions.

using namespace weir;
using namespace weir::host::c;

namespace {

weir_region_options default_region_options() {
  const host::RegionOptions defaults;
  weir_region_options options{};
  options.size = sizeof(options);
  options.reads = defaults.reads;
  return options;
}

/// In place of an average, which no switch makes: refused with other pairs.
constexpr auto kNoOperation = static_cast<Operation>(255);

host::RegionOptions translate(const weir_region_options& options) {
  host::RegionOptions result{.window = options.window,
                             .views = {},
                             .entries = options.entries,
                             .loopback = host::Loopback::none,
                             .patience = std::chrono::seconds(options.patience_s),
                             .forming = std::chrono::seconds(options.forming_s),
                             .reads = options.reads};
  if (options.loopback > 1) {
    throw std::invalid_argument(fmt::format("loopback: found {}; allowed: 0, 1", options.loopback));
  }
  if (options.loopback == 1) {
    result.loopback = host::Loopback::own_writes;
  }
  if (options.view_count != 0) {
    object_at(options.views, "views");
  }
  // One too many are refused by their number later.
  const std::size_t count = std::min(options.view_count, host::kMostRegionViews + 1);
  for (const weir_region_view& view : std::span(options.views, count)) {
    const host::Call fold = call_of(host::CallKind::all_reduce, 0, view.type, view.operation);
    const bool is_fold = fold.finish == host::Finish::none;
    result.views.push_back({is_fold ? fold.operation : kNoOperation, fold.type});
  }
  return result;
}

/// Bytes of the caller's, which may be none.
template <typename Byte, typename Void>
std::span<Byte> bytes_at(Void* address, std::size_t bytes, std::string_view what) {
  auto* const first = static_cast<Byte*>(address);
  return {bytes == 0 ? first : &object_at(first, what), bytes};
}

/// Its group may be closed if it is over.
void close(weir_region& region) {
  if (region.region->is_over()) {
    region.region->close([] { return true; });
  } else {
    region.group->group.close_region(*region.region);
  }
}

} // namespace

void weir_region_options_init_sized(weir_region_options* options, size_t size) {
  write_struct(options, size, default_region_options());
}

weir_status weir_region_form(weir_group* group, void* memory, size_t bytes,
                             const weir_region_options* options, weir_region** region) {
  return guarded([&] {
    host::refuse_within_callback("weir_region_form");
    object_at(region, "region") = nullptr;
    weir_group& whole = object_at(group, "group");
    const weir_region_options given =
        options == nullptr ? default_region_options()
                           : read_struct("options", options, default_region_options());
    const auto copy = bytes_at<std::uint8_t>(memory, bytes, "memory");
    *region =
        new weir_region{group, whole.group.form_region(copy, translate(given), *whole.device)};
    return WEIR_OK;
  });
}

weir_status weir_region_write(weir_region* region, size_t offset, const void* data, size_t bytes,
                              uint32_t immediate, weir_request** request) {
  return guarded([&] {
    object_at(request, "request") = nullptr;
    host::Region& given = *object_at(region, "region").region;
    const auto from = bytes_at<const std::uint8_t>(data, bytes, "data");
    const auto tag =
        immediate == WEIR_NO_IMMEDIATE ? std::nullopt : std::optional<std::uint32_t>(immediate);
    *request = new weir_request{given.write(offset, from, tag)};
    return WEIR_OK;
  });
}

weir_status weir_region_read(weir_region* region, size_t view, size_t offset, void* out,
                             size_t bytes, weir_request** request) {
  return guarded([&] {
    object_at(request, "request") = nullptr;
    host::Region& given = *object_at(region, "region").region;
    *request =
        new weir_request{given.read(view, offset, bytes_at<std::uint8_t>(out, bytes, "out"))};
    return WEIR_OK;
  });
}

weir_status weir_region_notice(weir_region* region, uint16_t* rank, uint32_t* immediate) {
  return guarded([&] {
    object_at(rank, "rank");
    object_at(immediate, "immediate");
    const auto notice = object_at(region, "region").region->take_notice();
    if (!notice) {
      return still_pending({});
    }
    *rank = notice->rank;
    *immediate = notice->immediate;
    return WEIR_OK;
  });
}

void weir_region_close(weir_region* region) {
  guarded([&] {
    host::refuse_within_callback("weir_region_close");
    if (region != nullptr && region->region->is_here()) { // else it is the parent's
      const std::unique_ptr<weir_region> owned(region);
      close(*owned);
    }
    return WEIR_OK;
  });
}
