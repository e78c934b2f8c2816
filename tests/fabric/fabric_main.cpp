// SPDX-License-Identifier: BSD-3-Clause

/// Runs many seeds, or one with a trace. docs/lab/simulation.md says what is simulated.

#include "campaign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace weir::fabric;

constexpr std::string_view kUsage =
    "usage: fabric_sim [--seeds FIRST:COUNT] [--seed N] [--trace] [--minutes M] [--jobs N]\n"
    "                  [--switches one|some|trees] [--require-coverage] [--keep-going]\n";

enum class Demand : std::uint8_t { soundness, soundness_and_coverage };

struct Options {
  CampaignPlan plan;
  Demand demand = Demand::soundness;
};

void parse_seeds(const std::string& text, CampaignPlan& plan) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    throw std::invalid_argument("found --seeds " + text + "; right is FIRST:COUNT");
  }
  plan.first = std::stoull(text.substr(0, colon));
  plan.count = std::stoull(text.substr(colon + 1));
}

unsigned parse_jobs(const std::string& text) {
  constexpr unsigned long most = 1024;
  const unsigned long jobs = std::stoul(text);
  if (jobs == 0 || jobs > most) {
    throw std::invalid_argument(fmt::format("found --jobs {}; allowed: 1 .. {}", text, most));
  }
  return static_cast<unsigned>(jobs);
}

Mix parse_mix(const std::string& text) {
  if (text == "one") {
    return Mix::stars;
  }
  if (text == "some") {
    return Mix::some;
  }
  if (text == "trees") {
    return Mix::trees;
  }
  throw std::invalid_argument(
      fmt::format("found --switches {}; right is one, some or trees", text));
}

Options parse(int argc, char** argv) {
  Options options;
  CampaignPlan& plan = options.plan;
  plan.program = argv[0];
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const auto value = [&] {
      if (++i == argc) {
        throw std::invalid_argument(fmt::format("{} wants a value", option));
      }
      return std::string(argv[i]);
    };
    if (option == "--seeds") {
      parse_seeds(value(), plan);
    } else if (option == "--seed") {
      plan.first = std::stoull(value());
      plan.count = 1;
    } else if (option == "--minutes") {
      plan.minutes = std::stod(value());
    } else if (option == "--jobs") {
      plan.jobs = parse_jobs(value());
    } else if (option == "--switches") {
      plan.mix = parse_mix(value());
    } else if (option == "--trace") {
      plan.tracing = Tracing::on;
    } else if (option == "--require-coverage") {
      options.demand = Demand::soundness_and_coverage;
    } else if (option == "--keep-going") {
      plan.on_failure = OnFailure::go_on;
    } else {
      throw std::invalid_argument(fmt::format("found {}\n{}", option, kUsage));
    }
  }
  return options;
}

/// All seeds are one test; each required row of coverage is another.
int run(const Options& options) {
  Campaign campaign(options.plan);
  campaign.run();
  const Coverage& coverage = campaign.coverage();
  std::size_t failed = campaign.failed() == 0 ? 0 : 1;
  std::size_t passed = 1 - failed;
  fmt::print("{}{}", coverage.statistics(), coverage.table());
  if (options.demand == Demand::soundness_and_coverage) {
    const std::vector<Coverage::Line> required = coverage.required();
    const auto reached = static_cast<std::size_t>(std::ranges::count_if(
        required, [](const Coverage::Line& line) { return line.times != 0; }));
    fmt::print("{} of {} rows reached\n", reached, required.size());
    failed += required.size() - reached;
    passed += reached;
  }
  fmt::print("{} seeds from {}, {} of them failed, in {:.0f} s, {:.0f} seeds/s\n", campaign.seeds(),
             options.plan.first, campaign.failed(), campaign.seconds(),
             static_cast<double>(campaign.seeds()) / campaign.seconds());
  fmt::print("fabric: {} passed, {} failed, 0 skipped\n", passed, failed);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int main(int argc, char** argv) {
  report_crashes();
  try {
    return run(parse(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "fabric_sim: {}\n", error.what());
    return 2;
  }
}
