// SPDX-License-Identifier: BSD-3-Clause
#include "host/bootstrap/lineage.hpp"

#include "host/bootstrap/frame_seal.hpp"
#include "host/bootstrap/random_bytes.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <stdexcept>
#include <string>

namespace weir::host {
namespace {

/// Before the endpoint in rank 0's part of the gather.
using Token = std::array<std::uint8_t, 32>;

/// The hosts by whose addresses the other ranks have found this one.
std::set<std::string> own_hosts(const Rendezvous& rendezvous, std::uint16_t world) {
  std::set<std::string> hosts;
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    if (const FramedStream* const connection = rendezvous.connection(rank)) {
      hosts.insert(connection->local_host());
    }
  }
  return hosts;
}

/// The endpoint's host is only right for others if all of them use the same. Tells the others that
/// there is none.
Endpoint open_listener(Lineage& lineage, Rendezvous& rendezvous) {
  const std::set<std::string> hosts = own_hosts(rendezvous, lineage.self.world);
  const std::string& host = *hosts.begin();
  try {
    lineage.listener = hosts.size() == 1 ? listen_at({host, "0"}) : listen_everywhere();
  } catch (const std::runtime_error& error) {
    rendezvous.abandon(Error(ErrorCode::transport_failure, lineage.self.rank,
                             fmt::format("rank {}: {}", lineage.self.rank, error.what())));
  }
  return {host, std::to_string(port_of(lineage.listener))};
}

Endpoint read_endpoint(std::uint16_t rank, ByteView blob) {
  const std::optional<Endpoint> endpoint = Endpoint::parse(std::string(blob.begin(), blob.end()));
  if (!endpoint) {
    throw Error(ErrorCode::mismatch, rank,
                fmt::format("rendezvous: rank {} does not say where it listens", rank));
  }
  return *endpoint;
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

std::shared_ptr<Lineage> found_lineage(Rendezvous& rendezvous, const RendezvousPlan& plan) {
  auto lineage = std::make_shared<Lineage>();
  lineage->self = {plan.rank, plan.world};
  lineage->keep_alive = plan.keep_alive;
  const Endpoint own = open_listener(*lineage, rendezvous);
  const std::string text = own.text();
  Blob blob(text.begin(), text.end());
  if (plan.rank == 0) {
    const Token token = random_bytes<sizeof(Token)>();
    blob.insert(blob.begin(), token.begin(), token.end());
  }
  const std::vector<Blob> all = rendezvous.gather(blob);
  const ByteView first = all[0];
  if (first.size() < sizeof(Token)) {
    throw Error(ErrorCode::mismatch, 0, "rendezvous: rank 0 drew no token");
  }
  lineage->credentials = {rendezvous.credentials().job,
                          secret_from(rendezvous.credentials().secret, first.first(sizeof(Token)))};
  for (std::uint16_t rank = 0; rank < plan.world; ++rank) {
    const ByteView part = rank == 0 ? first.subspan(sizeof(Token)) : ByteView(all[rank]);
    lineage->endpoints.push_back(read_endpoint(rank, part));
  }
  if (plan.rank != 0) { // rank 0 may have other addresses for others
    lineage->endpoints[0].host = rendezvous.connection(0)->peer_host();
  }
  return lineage;
}

} // namespace weir::host
