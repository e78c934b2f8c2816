// SPDX-License-Identifier: BSD-3-Clause
#include "worker/sweep_report.hpp"

#include "text/json.hpp"
#include "worker/bandwidth.hpp"
#include "worker/group_lines.hpp"
#include "worker/reduction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace weir::app {
namespace {

constexpr std::string_view kCallColumns = "{:>12} {:>12} {:>8} {:>8} {:>5}";
constexpr std::string_view kSpeedColumns = " {:>9} {:>8} {:>8} {:>7}";
constexpr std::string_view kLatencyColumns = " {:>9} {:>9} {:>9} {:>9} {:>9}";
constexpr int kCallWidth = 12 + 1 + 12 + 1 + 8 + 1 + 8 + 1 + 5;
constexpr int kSpeedWidth = 10 + 9 + 9 + 8;
constexpr int kLatencyWidth = 5 * 10;
constexpr double kNanosecondsPerSecond = 1e9;
constexpr double kNanosecondsPerMicrosecond = 1e3;

/// nccl-tests show out of place first.
std::vector<Placement> in_order(std::span<const Placement> placements) {
  std::vector<Placement> ordered;
  for (const Placement placement : {Placement::out_of_place, Placement::in_place}) {
    if (std::ranges::find(placements, placement) != placements.end()) {
      ordered.push_back(placement);
    }
  }
  return ordered;
}

const std::optional<Measurement>& measurement_of(const SweepRow& row, Placement placement) {
  return placement == Placement::in_place ? row.in_place : row.out_of_place;
}

std::string_view type_name(const host::Call& call) {
  return call.has_data() ? name_of(call.type) : "none";
}

Bandwidth mean_bandwidth_of(const SweepRow& row, const Measurement& measurement,
                            std::uint16_t world) {
  return bandwidth_of(row.call, world, measurement.latencies.mean / kNanosecondsPerSecond);
}

std::string wrong_text(const std::optional<std::uint64_t>& wrong, std::string_view unchecked) {
  return wrong ? std::to_string(*wrong) : std::string(unchecked);
}

/// A line of the heading: `call`, then one of `speed` and of `latency` for each placement.
template <typename Speed, typename Latency>
std::string heading_line(std::span<const Placement> placements, std::string_view call, Speed speed,
                         Latency latency) {
  std::string line = fmt::format("#{:>{}}", call, kCallWidth - 1);
  for (const Placement placement : placements) {
    line += speed(placement);
  }
  for (const Placement placement : placements) {
    line += latency(placement);
  }
  return line + "\n";
}

std::string speed_cells(const std::optional<Measurement>& measurement, const SweepRow& row,
                        std::uint16_t world) {
  if (!measurement) {
    return fmt::format(kSpeedColumns, "-", "-", "-", "-");
  }
  const Bandwidth bandwidth = mean_bandwidth_of(row, *measurement, world);
  return fmt::format(kSpeedColumns, microseconds_text(measurement->latencies.mean),
                     fmt::format("{:.3f}", bandwidth.algorithm),
                     fmt::format("{:.3f}", bandwidth.bus), wrong_text(measurement->wrong, "N/A"));
}

std::string latency_cells(const std::optional<Measurement>& measurement) {
  if (!measurement) {
    return fmt::format(kLatencyColumns, "-", "-", "-", "-", "-");
  }
  const Latencies& of = measurement->latencies;
  const auto text = [](std::uint64_t time) { return microseconds_text(static_cast<double>(time)); };
  return fmt::format(kLatencyColumns, text(of.min), text(of.p50), text(of.p95), text(of.p99),
                     text(of.max));
}

/// Over all measurements of calls that have data, as nccl-tests do.
double average_bus_bandwidth(std::span<const SweepRow> rows, std::uint16_t world) {
  double sum = 0;
  std::size_t count = 0;
  for (const SweepRow& row : rows) {
    for (const auto& measurement : {row.out_of_place, row.in_place}) {
      if (measurement && row.call.has_data()) {
        sum += mean_bandwidth_of(row, *measurement, world).bus;
        ++count;
      }
    }
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

std::string measurement_json(const std::optional<Measurement>& measurement, const SweepRow& row,
                             std::uint16_t world) {
  if (!measurement) {
    return "null";
  }
  const Latencies& of = measurement->latencies;
  const Bandwidth bandwidth = mean_bandwidth_of(row, *measurement, world);
  const auto us = [](auto time) {
    return fmt::format("{:.3f}", static_cast<double>(time) / kNanosecondsPerMicrosecond);
  };
  return fmt::format("{{\"mean_us\": {}, \"min_us\": {}, \"p50_us\": {}, \"p95_us\": {}, "
                     "\"p99_us\": {}, \"max_us\": {}, \"algbw_gb_s\": {:.6f}, "
                     "\"busbw_gb_s\": {:.6f}, \"wrong\": {}}}",
                     us(of.mean), us(of.min), us(of.p50), us(of.p95), us(of.p99), us(of.max),
                     bandwidth.algorithm, bandwidth.bus, wrong_text(measurement->wrong, "null"));
}

std::string row_json(const SweepRow& row, std::uint16_t world) {
  const host::Call& call = row.call;
  return fmt::format(
      "  {{\"collective\": \"{}\", \"bytes\": {}, \"count\": {}, \"type\": \"{}\", "
      "\"op\": \"{}\", \"root\": {},\n   \"out_of_place\": {},\n   \"in_place\": {}}}",
      name_of(call.kind), bytes_of(call, world), call.count, type_name(call), reduction_name(call),
      call.has_root() ? std::to_string(call.root) : "null",
      measurement_json(row.out_of_place, row, world), measurement_json(row.in_place, row, world));
}

} // namespace

std::string microseconds_text(double nanoseconds) {
  const double us = nanoseconds / kNanosecondsPerMicrosecond;
  const int decimals = us < 100 ? 2 : us < 10'000 ? 1 : 0;
  return fmt::format("{:.{}f}", us, decimals);
}

std::string sweep_heading(const SweepSetting& setting, const SweepOptions& options) {
  return fmt::format(
      "# weir-worker: world={} epoch={} algorithm={}{} warm-ups={} iterations={} checked={}\n"
      "# Times: of each call the slowest rank's; from a barrier to the end of the call; in us.\n"
      "# Bandwidths: of the mean time, as nccl-tests define them; in GB/s.\n",
      setting.place.world, setting.epoch, setting.algorithm,
      reasons_of(setting.reason, setting.missing_rings), options.warm_ups, options.iterations,
      options.checked);
}

std::string table_heading(host::CallKind kind, std::span<const Placement> placements) {
  const std::vector<Placement> ordered = in_order(placements);
  return fmt::format("#\n# {}\n", name_of(kind)) +
         heading_line(
             ordered, "",
             [](Placement placement) {
               return fmt::format("{:>{}}", name_of(placement), kSpeedWidth);
             },
             [](Placement placement) {
               return fmt::format("{:>{}}", fmt::format("latency {}", name_of(placement)),
                                  kLatencyWidth);
             }) +
         heading_line(
             ordered, fmt::format(kCallColumns, "size", "count", "type", "redop", "root").substr(1),
             [](Placement) {
               return fmt::format(kSpeedColumns, "time", "algbw", "busbw", "#wrong");
             },
             [](Placement) {
               return fmt::format(kLatencyColumns, "min", "p50", "p95", "p99", "max");
             });
}

std::string table_row(const SweepRow& row, std::span<const Placement> placements,
                      std::uint16_t world) {
  const host::Call& call = row.call;
  const std::vector<Placement> ordered = in_order(placements);
  std::string line =
      fmt::format(kCallColumns, bytes_of(call, world), call.count, type_name(call),
                  reduction_name(call), call.has_root() ? static_cast<int>(call.root) : -1);
  for (const Placement placement : ordered) {
    line += speed_cells(measurement_of(row, placement), row, world);
  }
  for (const Placement placement : ordered) {
    line += latency_cells(measurement_of(row, placement));
  }
  return line + "\n";
}

std::optional<std::uint64_t> wrong_elements_of(std::span<const SweepRow> rows) {
  std::optional<std::uint64_t> wrong;
  for (const SweepRow& row : rows) {
    for (const auto& measurement : {row.out_of_place, row.in_place}) {
      if (measurement && measurement->wrong) {
        wrong = wrong.value_or(0) + *measurement->wrong;
      }
    }
  }
  return wrong;
}

std::string sweep_ending(std::span<const SweepRow> rows, std::uint16_t world) {
  const std::optional<std::uint64_t> wrong = wrong_elements_of(rows);
  return fmt::format("#\n# Wrong elements: {}{}\n# Average bus bandwidth: {:.3f} GB/s\n",
                     wrong_text(wrong, "nothing was checked"),
                     wrong.value_or(0) == 0 ? "" : " FAILED", average_bus_bandwidth(rows, world));
}

std::string sweep_json(const SweepSetting& setting, const SweepOptions& options,
                       std::span<const SweepRow> rows,
                       const std::optional<std::uint64_t>& retransmissions) {
  const std::uint16_t world = setting.place.world;
  std::vector<std::string> row_texts;
  for (const SweepRow& row : rows) {
    row_texts.push_back(row_json(row, world));
  }
  return fmt::format(
      "{{\"rank\": {}, \"world\": {}, \"epoch\": {}, \"algorithm\": \"{}\", \"reason\": {}, "
      "{}, "
      "\"warm_ups\": {}, \"iterations\": {}, \"checked\": {}, \"times_of\": \"slowest rank\", "
      "\"wrong\": {}, \"average_busbw_gb_s\": {:.6f}, \"retransmissions\": {},\n \"rows\": "
      "[\n{}\n ]}}\n",
      setting.place.rank, world, setting.epoch, setting.algorithm,
      text::json_string(setting.reason), rings_json(setting.rings, setting.missing_rings),
      options.warm_ups, options.iterations, options.checked,
      wrong_text(wrong_elements_of(rows), "null"), average_bus_bandwidth(rows, world),
      wrong_text(retransmissions, "null"), fmt::join(row_texts, ",\n"));
}

} // namespace weir::app
