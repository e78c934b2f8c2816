// SPDX-License-Identifier: BSD-3-Clause

/// What comments in config/ and pages say of memory, beside what the switch asks EAL for.

#include "config/config.hpp"
#include "control/memory.hpp"
#include "ring/ring_set.hpp"
#include "stage/ring_state.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <string>
#include <vector>

namespace weir::control::memory_figures_test {
namespace {

const std::filesystem::path kRoot = WEIR_SOURCE_ROOT;

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

MemoryPlan plan_of(const config::Config& config) {
  const ring::RingSet rings(config.rings);
  return plan_memory(config, rings, with_queues(config, place(config, rings)));
}

std::vector<std::filesystem::path> configurations() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "config")) {
    if (entry.path().extension() == ".yaml") {
      files.push_back(entry.path());
    }
  }
  return files;
}

std::uint64_t mebibytes(double bytes) {
  return static_cast<std::uint64_t>(std::lround(bytes / kMiB));
}

/// The numbers in all matches, in order.
std::vector<std::uint64_t> numbers_in(const std::string& text, const std::regex& pattern) {
  std::vector<std::uint64_t> numbers;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    for (std::size_t group = 1; group < match->size(); ++group) {
      numbers.push_back(std::stoull((*match)[group]));
    }
  }
  return numbers;
}

/// MiB that EAL gets by -m or by --socket-mem, on all nodes. nullopt: the file names none.
std::optional<std::uint64_t> given_by(const config::Config& config) {
  const std::vector<std::string>& options = config.eal_options;
  for (std::size_t i = 0; i + 1 < options.size(); ++i) {
    if (options[i] != "-m" && options[i] != "--socket-mem") {
      continue;
    }
    std::uint64_t sum = 0;
    for (const std::uint64_t node : numbers_in(options[i + 1], std::regex(R"((\d+))"))) {
      sum += node;
    }
    return sum;
  }
  return std::nullopt;
}

std::string said_by(const MemoryPlan& plan) {
  return fmt::format("The switch asks for {} MiB: {} buffers of {} bytes, and {} MiB for slots and "
                     "results",
                     mebibytes(static_cast<double>(plan.total())), plan.mbufs, plan.mbuf_bytes,
                     mebibytes(static_cast<double>(plan.ring_bytes)));
}

/// Comments go on in the next line.
std::string without_line_ends(const std::string& text) {
  return std::regex_replace(text, std::regex(R"(\n\s*#\s*)"), " ");
}

TEST(MemoryFigures, EveryConfigurationHasRoomInWhatItGivesEal) {
  std::size_t with_memory = 0;
  for (const std::filesystem::path& file : configurations()) {
    const config::Config config = config::load_config(file);
    const std::optional<std::uint64_t> given = given_by(config);
    with_memory += given ? 1 : 0;
    const MemoryPlan plan = plan_of(config);
    EXPECT_LE(mebibytes(static_cast<double>(plan.total())), given.value_or(UINT64_MAX))
        << file << ": " << plan.explanation;
  }
  EXPECT_GE(with_memory, 4u);
}

TEST(MemoryFigures, TheLabsCommentsSayWhatTheSwitchAsksFor) {
  for (const char* name : {"config/lab-mlx5.yaml", "config/lab-ice.yaml"}) {
    const config::Config config = config::load_config(kRoot / name);
    const std::string text = without_line_ends(text_of(kRoot / name));
    const std::string said = said_by(plan_of(config));
    EXPECT_NE(text.find(said), std::string::npos) << name << " should say: " << said;
    const ring::Ring ring(config.rings.front());
    const slot::SlotTable::Dimensions dimensions = stage::dimensions_of(ring);
    EXPECT_EQ(numbers_in(text, std::regex(R"(= (\d+) slots\. They hold (\d+) packets)")),
              (std::vector<std::uint64_t>{dimensions.slots(), dimensions.held_frames()}))
        << name;
  }
}

/// No other comment there gives a sum of memory that nothing compares.
/// A window of 100 messages of 64 packets for each child there, and for the parent.
TEST(RingBacklog, HasRoomForTheChildrenAndTheParentBehindThePort) {
  const config::Config config = config::parse_config(
      "ports: [{ name: up, device: d0 }, { name: h0, device: d1 }, { name: h1, device: d2 }]\n"
      "rings:\n"
      "  - { id: 1, window: 100, max_message_bytes: 65536, parent: { switch: s, port: up },\n"
      "      members: [{ ip: 10.0.0.1 }, { ip: 10.0.0.2 }, { ip: 10.0.0.3 }],\n"
      "      children: [{ rank: 0, port: h0 }, { rank: 1, port: h0 }] }\n",
      "f.yaml");
  EXPECT_EQ(ring_backlog_of(config, 0), 8192u) << "6400 partial sums";
  EXPECT_EQ(ring_backlog_of(config, 1), 16384u) << "12800 totals";
  EXPECT_EQ(ring_backlog_of(config, 2), 4096u) << "nobody of the ring is there";
}

TEST(MemoryFigures, NoOtherCommentOfAConfigurationSaysHowMuch) {
  for (const std::filesystem::path& file : configurations()) {
    const std::string text = text_of(file);
    const auto figures = numbers_in(text, std::regex(R"((\d+) MiB)"));
    const bool is_compared = text.find("The switch asks for") != std::string::npos;
    EXPECT_EQ(figures.size(), is_compared ? 2u : 0u) << file;
  }
}

} // namespace
} // namespace weir::control::memory_figures_test
