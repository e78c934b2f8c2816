// SPDX-License-Identifier: BSD-3-Clause

/// One rank: all_reduce RANK WORLD RENDEZVOUS RING INTERFACE ADDRESS
/// Adds up two tensors of every rank at once, and prints the first sum of each.

#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>
#include <weir/weir.hpp>

namespace {

void run(std::span<char*> arguments) {
  weir::ContextOptions device;
  device.device = arguments[5];
  device.ip = arguments[6];
  const weir::Context context(device);
  const auto ring = static_cast<std::uint32_t>(std::atoi(arguments[4]));
  weir::GroupOptions options;
  options.rank = static_cast<std::uint16_t>(std::atoi(arguments[1]));
  options.world = static_cast<std::uint16_t>(std::atoi(arguments[2]));
  options.rendezvous = arguments[3];
  options.rings = &ring;
  options.ring_count = 1;
  weir::Group group(context, options);
  std::vector<float> gradients(1'000'000, options.rank + 1.0F);
  std::vector<std::int32_t> counts(1000, options.rank);
  weir::Request first = group.start_all_reduce(std::span(gradients), WEIR_SUM);
  weir::Request second = group.start_all_reduce(std::span(counts), WEIR_MAX);
  first.wait();
  second.wait();
  std::printf("%g and %d by way of the %s\n", gradients[0], counts[0], group.algorithm().data());
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::puts("usage: all_reduce RANK WORLD RENDEZVOUS RING INTERFACE ADDRESS");
    return 2;
  }
  try {
    run({argv, static_cast<std::size_t>(argc)});
    return 0;
  } catch (const weir::Error& error) {
    std::printf("%s: %s\n", weir_status_name(error.status()), error.what());
    return 1;
  }
}
