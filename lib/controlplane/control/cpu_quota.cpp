// SPDX-License-Identifier: BSD-3-Clause
#include "control/cpu_quota.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace weir::control {
namespace {

using std::filesystem::path;

/// A process's place in a hierarchy of groups.
struct Place {
  path top;   // where the hierarchy's files are
  path group; // below it
};

bool has_cpu(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

/// Of a line "4:cpu,cpuacct:/GROUP", or of version 2 "0::/GROUP". Nothing: it is not about CPUs.
std::optional<Place> place_in(const std::string& line, const path& root) {
  const std::size_t first = line.find(':');
  const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
  if (second == std::string::npos) {
    return std::nullopt;
  }
  const std::string controllers = line.substr(first + 1, second - first - 1);
  const path group = path(line.substr(second + 1)).relative_path();
  if (controllers.empty()) {
    return Place{root, group};
  }
  if (!has_cpu(controllers)) {
    return std::nullopt;
  }
  std::error_code error; // a folder may name the controllers in another order, with links beside it
  const path named = root / controllers;
  return Place{std::filesystem::exists(named, error) ? named : root / "cpu", group};
}

/// Microseconds of each period, or "max" or -1, which is no number of them.
std::optional<double> share(std::istream&& quota, std::istream&& period) {
  double granted = 0;
  double of = 0;
  const bool is_limited = quota >> granted && granted > 0 && period >> of && of > 0;
  return is_limited ? std::optional(granted / of) : std::nullopt;
}

std::optional<double> quota_of(const path& group) {
  std::ifstream both(group / "cpu.max");
  std::string quota;
  std::string period;
  if (both >> quota >> period) {
    return share(std::istringstream(quota), std::istringstream(period));
  }
  return share(std::ifstream(group / "cpu.cfs_quota_us"),
               std::ifstream(group / "cpu.cfs_period_us"));
}

void lower(std::optional<double>& least, std::optional<double> other) {
  if (other) {
    least = std::min(*other, least.value_or(*other));
  }
}

} // namespace

std::optional<double> cpu_quota(const path& process, const path& root) {
  std::optional<double> least;
  std::ifstream lines(process);
  for (std::string line; std::getline(lines, line);) {
    const std::optional<Place> place = place_in(line, root);
    if (!place) {
      continue;
    }
    path group = place->top;
    lower(least, quota_of(group));
    for (const path& part : place->group) {
      group /= part;
      lower(least, quota_of(group));
    }
  }
  return least;
}

} // namespace weir::control
