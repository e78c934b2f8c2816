// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/region_formation.hpp"

#include "host/base/error.hpp"
#include "host/region/region_notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weir::host {
namespace {

constexpr std::size_t kLeastBytes = 16; // a hello is as long

/// Without one the switch waits as long for hellos as the group does for its ranks.
std::chrono::seconds forming_time(const RegionOptions& options, const GroupOptions& group) {
  return options.forming.count() != 0
             ? options.forming
             : std::max(std::chrono::seconds(1),
                        std::chrono::ceil<std::chrono::seconds>(group.form_timeout));
}

class RegionFormation {
 public:
  RegionFormation(const RegionMakers& makers, std::span<std::uint8_t> memory, RegionOptions options)
      : makers_(makers), memory_(memory), options_(std::move(options)),
        number_(makers.ends->next_number()) {
    options_.forming = forming_time(options_, makers.options);
  }

  std::shared_ptr<Region> form();

 private:
  RegionNote own_note();
  RegionAnswer make(const std::vector<RegionMember>& members);
  std::shared_ptr<Region> open(MadeRegion made);

  const RegionMakers& makers_;
  const std::span<std::uint8_t> memory_;
  RegionOptions options_;
  const std::uint32_t number_;
  std::unique_ptr<RegionLink> link_;
  std::unique_ptr<HeldRegion> held_;
  std::exception_ptr defect_; // why this rank has no end
};

/// What is wrong here, all ranks learn, which would wait otherwise.
RegionNote RegionFormation::own_note() {
  const std::uint16_t rank = makers_.options.rank;
  RegionNote note{.bytes = memory_.size(), .options = options_, .member = RegionMember{}};
  try {
    if (const std::string defect = find_defect(options_, memory_.size()); !defect.empty()) {
      throw std::invalid_argument(defect);
    }
    link_ = makers_.open_link(options_.reads);
    note.member = link_->member();
  } catch (const Error& error) {
    defect_ = std::current_exception();
    note.member = Error(error.code(), rank, fmt::format("rank {}: {}", rank, error.what()));
  } catch (const std::exception& error) {
    defect_ = std::current_exception();
    note.member =
        Error(ErrorCode::mismatch, rank, fmt::format("rank {}: {}", rank, text_of(error)));
  }
  return note;
}

std::shared_ptr<Region> RegionFormation::form() {
  const std::uint16_t world = makers_.options.world;
  std::vector<std::uint8_t> notes(world * kRegionNoteBytes);
  makers_.gather(encode(own_note()).data(), kRegionNoteBytes, notes.data());
  if (defect_) {
    std::rethrow_exception(defect_);
  }
  const std::vector<RegionMember> members = agreed_members(notes);
  std::vector<std::uint8_t> answer(kRegionAnswerBytes);
  if (makers_.options.rank == 0) {
    answer = encode(make(members));
  }
  makers_.broadcast(answer);
  return open(decode_region_answer(answer, members.size(), options_.views.size()));
}

RegionAnswer RegionFormation::make(const std::vector<RegionMember>& members) {
  try {
    held_ = std::make_unique<HeldRegion>(makers_.options, options_, members, memory_.size());
    return held_->made();
  } catch (const Error& error) {
    return error;
  }
}

std::shared_ptr<Region> RegionFormation::open(MadeRegion made) {
  const GroupOptions& group = makers_.options;
  link_->connect(made, made.ends[group.rank]);
  auto region = std::make_shared<Region>(
      RegionParts{.number = number_,
                  .rank = group.rank,
                  .memory = memory_,
                  .made = std::move(made),
                  .path_mtu = group.path_mtu,
                  .link = std::move(link_),
                  .ends = makers_.ends,
                  .held = std::move(held_),
                  .progress = group.progress,
                  .timeout = group.timeout,
                  .farewell = group.farewell.count() != 0 ? group.farewell : group.timeout});
  region->begin(options_.forming + kRegionReasonTime);
  return region;
}

} // namespace

std::string find_defect(const RegionOptions& options, std::size_t bytes) {
  if (bytes < kLeastBytes) {
    return fmt::format("bytes: found {}; allowed: {} and more", bytes, kLeastBytes);
  }
  if (options.reads == 0 || options.reads > kMostRegionReads) {
    return fmt::format("reads: found {}; allowed: 1 .. {}", options.reads, kMostRegionReads);
  }
  if (options.views.size() > kMostRegionViews) {
    return fmt::format("view_count: found {}; allowed: 0 .. {}", options.views.size(),
                       kMostRegionViews);
  }
  for (const RegionView& view : options.views) {
    if (!is_reducible(view.type, view.operation)) {
      return fmt::format("views: found operation {} of type {}; allowed: those of which "
                         "weir_is_reducible says 1",
                         static_cast<unsigned>(view.operation), static_cast<unsigned>(view.type));
    }
  }
  return {};
}

std::shared_ptr<Region> form_region(const RegionMakers& makers, std::span<std::uint8_t> memory,
                                    RegionOptions options) {
  if (const std::uint16_t world = makers.options.world; world < 2) {
    throw std::invalid_argument(fmt::format("group: found {} rank; allowed for a region: 2 .. {}",
                                            world, kMostRegionMembers));
  }
  return RegionFormation(makers, memory, std::move(options)).form();
}

} // namespace weir::host
