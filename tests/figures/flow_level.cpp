// SPDX-License-Identifier: BSD-3-Clause
#include "flow_level.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>

namespace weir::figures {
namespace {

constexpr double kSame = 1e-9; // relative: shares this close are one share

/// One link while rates are being shared out.
struct Share {
  double free = 0;
  std::uint32_t flows = 0; // still without a rate

  double each() const { return free / flows; }
};

void check(const std::vector<double>& rates, const std::vector<Flow>& flows) {
  for (const Flow& flow : flows) {
    if (flow.links.empty()) {
      throw std::invalid_argument("a flow crosses no link");
    }
    for (const std::uint32_t link : flow.links) {
      if (link >= rates.size() || rates[link] <= 0) {
        throw std::invalid_argument("a flow crosses a link that is missing or has no rate");
      }
    }
  }
}

std::vector<Share> shares_of(const std::vector<double>& rates, const std::vector<Flow>& flows) {
  std::vector<Share> shares(rates.size());
  for (std::size_t link = 0; link < rates.size(); ++link) {
    shares[link].free = rates[link];
  }
  for (const Flow& flow : flows) {
    for (const std::uint32_t link : flow.links) {
      ++shares[link].flows;
    }
  }
  return shares;
}

double smallest_share(const std::vector<Share>& shares) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const Share& share : shares) {
    smallest = share.flows > 0 ? std::min(smallest, share.each()) : smallest;
  }
  return smallest;
}

/// Max-min fair rates by progressive filling (Bertsekas and Gallager, Data Networks, §6.5.2).
std::vector<double> fair_rates(const std::vector<double>& rates, const std::vector<Flow>& flows) {
  std::vector<Share> shares = shares_of(rates, flows);
  std::vector<double> given(flows.size(), 0);
  for (std::size_t left = flows.size(); left > 0;) {
    const double smallest = smallest_share(shares);
    std::vector<bool> is_full(shares.size());
    for (std::size_t link = 0; link < shares.size(); ++link) {
      is_full[link] = shares[link].flows > 0 && shares[link].each() <= smallest * (1 + kSame);
    }
    for (std::size_t one = 0; one < flows.size(); ++one) {
      const auto& links = flows[one].links;
      if (given[one] > 0 || std::ranges::none_of(links, [&](auto link) { return is_full[link]; })) {
        continue;
      }
      given[one] = smallest;
      --left;
      for (const std::uint32_t link : links) {
        shares[link].free -= smallest;
        --shares[link].flows;
      }
    }
  }
  return given;
}

} // namespace

double seconds_of(const std::vector<double>& rates, const std::vector<Flow>& flows) {
  check(rates, flows);
  std::vector<Flow> under_way = flows;
  double now = 0;
  while (!under_way.empty()) {
    const std::vector<double> given = fair_rates(rates, under_way);
    double next = std::numeric_limits<double>::infinity();
    for (std::size_t one = 0; one < under_way.size(); ++one) {
      next = std::min(next, under_way[one].bytes / given[one]);
    }
    std::vector<Flow> left;
    for (std::size_t one = 0; one < under_way.size(); ++one) {
      const double bytes = under_way[one].bytes - given[one] * next;
      if (bytes > under_way[one].bytes * kSame) {
        left.push_back({under_way[one].links, bytes});
      }
    }
    now += next;
    under_way = std::move(left);
  }
  return now;
}

double seconds_of(std::vector<double> rates, const std::vector<Phase>& phases, Mutation mutation) {
  if (mutation == Mutation::link_slower) {
    rates.at(0) /= 2;
  }
  double seconds = 0;
  for (const Phase& phase : phases) {
    const bool is_late = mutation == Mutation::step_later && &phase == &phases.front();
    seconds += (phase.times + (is_late ? 1 : 0)) * (phase.latency + seconds_of(rates, phase.flows));
  }
  return seconds;
}

double busiest_node(const std::vector<double>& rates, const std::vector<std::uint32_t>& entered,
                    const std::vector<Flow>& flows) {
  check(rates, flows);
  const std::vector<double> given = fair_rates(rates, flows);
  std::map<std::uint32_t, double> arriving;
  for (std::size_t one = 0; one < flows.size(); ++one) {
    for (const std::uint32_t link : flows[one].links) {
      arriving[entered.at(link)] += given[one];
    }
  }
  double most = 0;
  for (const auto& [node, rate] : arriving) {
    most = std::max(most, rate);
  }
  return most;
}

} // namespace weir::figures
