// SPDX-License-Identifier: BSD-3-Clause

/// One rank of a region by weir/weir.hpp, with the arguments of region_rank.c up to the address.
/// Each rank adds its part to all copies, and reads the sum of all. Ends with "region_rank_cpp:
/// 6 of 3", or an error.

#include "rank_options.h"
#include "weir/weir.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <span>
#include <vector>

namespace {

constexpr std::uint32_t kReady = 7;

int run(std::span<char*> arguments) {
  weir::ContextOptions device;
  device.device = arguments[5];
  device.ip = arguments[6];
  weir::Context context(device);
  weir::GroupOptions options;
  const auto ring = static_cast<std::uint32_t>(std::atoi(arguments[4]));
  set_rank_options(&options, &arguments[1], &ring);
  weir::Group group(context, options);
  std::vector<std::int32_t> copy(1024);
  copy[group.rank()] = group.rank() + 1; // a rank's own writes do not come back
  const std::array views{weir_region_view{WEIR_MAX, WEIR_I32},
                         weir_region_view{WEIR_SUM, WEIR_I32}};
  weir::RegionOptions shape;
  shape.views = views.data();
  shape.view_count = views.size();
  shape.window = 16;
  shape.entries = 8;
  weir::Region region(group, std::span(copy), shape);
  region
      .write(group.rank() * sizeof(std::int32_t), std::span(copy).subspan(group.rank(), 1), kReady)
      .wait();
  for (int others = group.world() - 1; others > 0;) {
    const std::optional<weir::Region::Notice> notice = region.notice();
    others -= notice && notice->immediate == kReady ? 1 : 0;
  }
  std::array<std::int32_t, 4> sums{};
  region.read(1, 0, std::span(sums)).wait();
  try {
    region.read(2, 0, std::span(sums));
  } catch (const weir::Error& error) {
    std::printf("region_rank_cpp: %s\n", error.what());
  }
  // Each copy has 1, 2, 3: so the sums are 3, 6, 9.
  std::printf("region_rank_cpp: %d of %d\n", sums[1], group.world());
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  try {
    return argc < 7 ? 2 : run(std::span(argv, static_cast<std::size_t>(argc)));
  } catch (const std::exception& error) {
    std::printf("region_rank_cpp: %s\n", error.what());
    return 1;
  }
}
