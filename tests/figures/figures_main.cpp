// SPDX-License-Identifier: BSD-3-Clause

/// Computes figures by id and prints each as one line of JSON. tools/figures checks and draws them.

#include "figure.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace weir::figures {
namespace {

constexpr std::string_view kUsage =
    "figures_main [--full] [--mutation link-slower|step-later] (--list | ID...)";

struct Options {
  Settings settings;
  bool is_list = false;
  std::vector<std::string_view> ids;
};

std::vector<Figure> all_figures() {
  std::vector<Figure> all;
  for (const auto family : {allreduce_switch_figures(), netreduce_figures(), multitree_figures(),
                            klenk_figures(), flare_figures(), planning_figures()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

Mutation mutation_called(std::string_view name) {
  if (name == "link-slower") {
    return Mutation::link_slower;
  }
  if (name == "step-later") {
    return Mutation::step_later;
  }
  throw std::invalid_argument(
      fmt::format("found mutation '{}'; allowed: link-slower, step-later", name));
}

Options options_of(const std::vector<std::string_view>& words) {
  Options options;
  for (std::size_t index = 0; index < words.size(); ++index) {
    if (words[index] == "--full") {
      options.settings.effort = Effort::full;
    } else if (words[index] == "--list") {
      options.is_list = true;
    } else if (words[index] == "--mutation" && index + 1 < words.size()) {
      options.settings.mutation = mutation_called(words[++index]);
    } else if (words[index].starts_with("-")) {
      throw std::invalid_argument(fmt::format("found '{}'; usage: {}", words[index], kUsage));
    } else {
      options.ids.push_back(words[index]);
    }
  }
  if (options.is_list != options.ids.empty()) {
    throw std::invalid_argument(fmt::format("wants either --list or ids; usage: {}", kUsage));
  }
  return options;
}

const Figure& figure_called(const std::vector<Figure>& all, std::string_view id) {
  for (const Figure& figure : all) {
    if (figure.id == id) {
      return figure;
    }
  }
  throw std::invalid_argument(fmt::format("found figure '{}'; --list names those there are", id));
}

void run(const Options& options) {
  const std::vector<Figure> all = all_figures();
  if (options.is_list) {
    for (const Figure& figure : all) {
      fmt::print("{}\n", figure.id);
    }
  }
  for (const std::string_view id : options.ids) {
    const Figure& figure = figure_called(all, id);
    Results results;
    figure.compute(options.settings, results);
    fmt::print("{}\n", results.as_json(id));
    std::fflush(stdout); // the caller counts lines to show progress
  }
}

} // namespace
} // namespace weir::figures

int main(int count, char** words) {
  try {
    weir::figures::run(weir::figures::options_of({words + 1, words + count}));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "figures_main: {}\n", error.what());
    return 2;
  }
}
