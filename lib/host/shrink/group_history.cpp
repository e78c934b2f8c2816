// SPDX-License-Identifier: BSD-3-Clause
#include "host/shrink/group_history.hpp"

#include "host/base/frame_seal.hpp"
#include "host/base/host_addresses.hpp"
#include "random/random_bytes.hpp"

#include <fmt/format.h>

#include <array>
#include <span>
#include <stdexcept>
#include <string>

namespace weir::host {
namespace {

/// Before the endpoints in rank 0's part of the gather.
using Token = std::array<std::uint8_t, 32>;

/// The addresses of this host on its connections to the other ranks.
std::set<std::string> own_hosts(const Rendezvous& rendezvous, std::uint16_t world) {
  std::set<std::string> hosts;
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    if (const FramedStream* const connection = rendezvous.connection(rank)) {
      hosts.insert(connection->local_host());
    }
  }
  return hosts;
}

/// Ends the group's formation on all ranks, if the body throws a system's error.
template <typename Body>
auto told(Rendezvous& rendezvous, std::uint16_t rank, Body&& body) {
  try {
    return body();
  } catch (const std::runtime_error& error) {
    rendezvous.abandon(
        Error(ErrorCode::transport_failure, rank, fmt::format("rank {}: {}", rank, error.what())));
  }
}

/// Where the others may look for this rank, which they have met at `met`. If all ranks have met on
/// one host, that host's own addresses suit them. Rank 0 knows, because it has a connection to
/// each.
std::vector<std::string> choose_hosts(Rendezvous& rendezvous, std::uint16_t rank,
                                      const std::set<std::string>& met) {
  const std::vector<HostAddress> addresses =
      told(rendezvous, rank, [] { return read_host_addresses(); });
  const std::uint8_t is_local = are_of_this_host(met, addresses) ? 1 : 0;
  const std::vector<Blob> all =
      rendezvous.gather(std::span(&is_local, 1), "where its connections come from");
  return all[0] == Blob{1} ? std::vector(met.begin(), met.end()) : announced(addresses, met);
}

/// Listens at a host by which all have met this rank, otherwise at all: some may still use another.
Socket open_listener(const std::vector<std::string>& hosts, const std::set<std::string>& met) {
  const bool is_one = met.size() == 1 && hosts == std::vector(met.begin(), met.end());
  return is_one ? listen_at({hosts.front(), "0"}) : listen_everywhere();
}

std::string join_endpoints(const std::vector<std::string>& hosts, std::uint16_t port) {
  std::vector<std::string> endpoints;
  for (const std::string& host : hosts) {
    endpoints.push_back(Endpoint{host, std::to_string(port)}.text());
  }
  return fmt::format("{}", fmt::join(endpoints, ","));
}

std::vector<Endpoint> read_endpoints(std::uint16_t rank, ByteView blob) {
  std::vector<Endpoint> endpoints = Endpoint::parse_list(std::string(blob.begin(), blob.end()));
  if (endpoints.empty()) {
    throw Error(ErrorCode::mismatch, rank,
                fmt::format("rendezvous: rank {} does not say where it listens", rank));
  }
  return endpoints;
}

/// Whoever may overhear the token still lacks the job's secret.
std::string secret_from(const std::string& job_secret, ByteView token) {
  const ByteView key(reinterpret_cast<const std::uint8_t*>(job_secret.data()), job_secret.size());
  static constexpr std::string_view kPurpose = "weir shrink 1:";
  const ByteView purpose(reinterpret_cast<const std::uint8_t*>(kPurpose.data()), kPurpose.size());
  const Mac secret = mac_of(key, {purpose, token});
  return {secret.begin(), secret.end()};
}

} // namespace

std::shared_ptr<GroupHistory> begin_history(Rendezvous& rendezvous, const RendezvousPlan& plan) {
  auto history = std::make_shared<GroupHistory>();
  history->self = {plan.rank, plan.world};
  history->keep_alive = plan.keep_alive;
  const std::set<std::string> met = own_hosts(rendezvous, plan.world);
  const std::vector<std::string> hosts = choose_hosts(rendezvous, plan.rank, met);
  history->listener = told(rendezvous, plan.rank, [&] { return open_listener(hosts, met); });
  const std::string text = join_endpoints(hosts, port_of(history->listener));
  Blob blob(text.begin(), text.end());
  if (plan.rank == 0) {
    const Token token = random_bytes<sizeof(Token)>();
    blob.insert(blob.begin(), token.begin(), token.end());
  }
  const std::vector<Blob> all = rendezvous.gather(blob, "where it listens");
  const ByteView first = all[0];
  if (first.size() < sizeof(Token)) {
    throw Error(ErrorCode::mismatch, 0, "rendezvous: rank 0 drew no token");
  }
  history->credentials = {rendezvous.credentials().job,
                          secret_from(rendezvous.credentials().secret, first.first(sizeof(Token)))};
  for (std::uint16_t rank = 0; rank < plan.world; ++rank) {
    const ByteView part = rank == 0 ? first.subspan(sizeof(Token)) : ByteView(all[rank]);
    history->endpoints.push_back(read_endpoints(rank, part));
  }
  if (plan.rank != 0) { // where this rank has reached rank 0 is where it is, whatever others know
    history->endpoints[0] = {
        {rendezvous.connection(0)->peer_host(), history->endpoints[0][0].port}};
  }
  return history;
}

} // namespace weir::host
