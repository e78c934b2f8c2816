// SPDX-License-Identifier: BSD-3-Clause

/// What schedulers grant: hosts for jobs, and the tokens by which these are asked for.

#include "jobs/loop.hpp"
#include "jobs/records.hpp"
#include "jobs/words.hpp"
#include "plan/generators.hpp"
#include "plan/host_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <optional>

namespace weir::jobs {
namespace {

constexpr std::size_t kMostName = 128;
constexpr std::ptrdiff_t kTokensOfHost = 2; // a call under way may have the one before

std::string digest_of(const std::string& token) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return {digest.begin(), digest.end()};
}

/// In a time that says nothing of them.
bool are_equal(const std::string& one, const std::string& other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

/// nullptr: it was not issued.
const v1::TokenRecord* token_in(const v1::AllocationRecord& record, const std::string& digest) {
  const auto found = std::ranges::find_if(
      record.tokens(), [&](const auto& one) { return are_equal(one.sha256(), digest); });
  return found == record.tokens().end() ? nullptr : &*found;
}

bool has_host(const v1::AllocationRecord& record, const std::string& host) {
  return std::ranges::find(record.hosts(), host) != record.hosts().end();
}

void check_name(const std::string& name) {
  const auto is_letter = [](char letter) { return letter > ' ' && letter <= '~'; };
  if (name.empty() || name.size() > kMostName || !std::ranges::all_of(name, is_letter)) {
    throw Loop::Refused(Code::invalid,
                        fmt::format("name: found '{}'; allowed: 1 to {} letters of ASCII, without "
                                    "blanks, as slurm:prod:4711",
                                    shown(name), kMostName));
  }
}

/// The oldest of the host's go.
void add_token(v1::AllocationRecord& record, const std::string& host, const std::string& digest) {
  auto& tokens = *record.mutable_tokens();
  const auto is_its = [&](const v1::TokenRecord& one) { return one.host() == host; };
  while (std::ranges::count_if(tokens, is_its) >= kTokensOfHost) {
    tokens.erase(std::ranges::find_if(tokens, is_its));
  }
  v1::TokenRecord& token = *tokens.Add();
  token.set_host(host);
  token.set_sha256(digest);
}

void check_is_same(const v1::AllocationRecord& before, const v1::GrantAllocationRequest& request,
                   const std::vector<std::string>& hosts) {
  if (!std::ranges::equal(before.hosts(), hosts) || before.tenant() != request.tenant()) {
    throw Loop::Refused(
        Code::impossible,
        fmt::format("allocation {}: found other hosts or another tenant; allowed: {}, "
                    "tenant '{}', as it was granted, or its end before",
                    request.name(), names_in_words(before.hosts()), before.tenant()));
  }
}

} // namespace

void Loop::require_scheduler(const Caller& caller) const {
  if (!caller.is_operator && !caller.is_scheduler) {
    throw Refused(Code::not_allowed,
                  fmt::format("certificate: found '{}'; allowed: a name under schedulers or under "
                              "operators",
                              caller.name));
  }
}

const v1::AllocationRecord* Loop::allocation_named(const std::string& name) const {
  const auto found = std::ranges::find_if(
      allocations_, [&](const auto& entry) { return entry.second.name() == name; });
  return found == allocations_.end() ? nullptr : &found->second;
}

/// Throws Refused: there is none, or another scheduler has granted it.
const v1::AllocationRecord& Loop::allocation_of(const Caller& caller,
                                                const std::string& name) const {
  const v1::AllocationRecord* const found = allocation_named(name);
  if (found == nullptr) {
    throw Refused(Code::not_found,
                  fmt::format("allocation: found '{}'; allowed: one that is granted", name));
  }
  if (!caller.is_operator && found->granted_by() != caller.name) {
    throw Refused(Code::not_allowed,
                  fmt::format("certificate: found '{}'; allowed: '{}', which has granted {}",
                              caller.name, found->granted_by(), name));
  }
  return *found;
}

std::vector<std::string> Loop::hosts_in(const std::string& list) const {
  const auto names = plan::names_in(list, plan::kMostVertices);
  if (!names) {
    throw Refused(
        Code::invalid,
        fmt::format("hosts: found '{}'; allowed: names as host[0-3,7],login1, at most {} in 64 KiB",
                    shown(list), plan::kMostVertices));
  }
  for (const std::string& name : *names) {
    const plan::VertexId vertex = site_.topology().find(name);
    if (vertex == plan::kNone || !site_.topology().is_node(vertex)) {
      throw Refused(Code::invalid,
                    fmt::format("hosts: found '{}'; allowed: hosts of the topology", name));
    }
  }
  return *names;
}

/// Empty: nobody, whose hosts are all, and who has no quota. Where there are tenants, operators
/// alone grant him something.
void Loop::check_tenant_has(const Caller& caller, const std::string& name,
                            const std::vector<std::string>& hosts) const {
  if (name.empty() && !site_.tenants.empty() && !caller.is_operator) {
    throw Refused(Code::invalid, "tenant: found none; allowed: a name under tenants");
  }
  const auto tenant = std::ranges::find(site_.tenants, name, &Tenant::name);
  if (!name.empty() && tenant == site_.tenants.end()) {
    throw Refused(Code::invalid,
                  fmt::format("tenant: found '{}'; allowed: a name under tenants", shown(name)));
  }
  for (const std::string& host : hosts) {
    if (tenant != site_.tenants.end() && !tenant->hosts.empty() &&
        std::ranges::find(tenant->hosts, host) == tenant->hosts.end()) {
      throw Refused(Code::not_allowed,
                    fmt::format("hosts: found {}, which is not tenant {}'s; allowed: {}", host,
                                name, names_in_words(tenant->hosts)));
    }
  }
}

bool Loop::save(const v1::AllocationRecord& record, const v1::FabricRecord& fabric,
                std::optional<std::uint64_t> replaced) {
  if (record.ByteSizeLong() > kMostRecordBytes) {
    throw Refused(Code::exhausted,
                  fmt::format("the allocation's record takes {} KiB; allowed: {}; fewer hosts",
                              record.ByteSizeLong() >> 10, kMostRecordBytes >> 10));
  }
  std::vector<store::Change> changes{{kFabricKey, fabric.SerializeAsString()},
                                     {allocation_key(record.id()), record.SerializeAsString()}};
  if (replaced) {
    changes.push_back({allocation_key(*replaced), std::nullopt});
  }
  if (!save(changes)) {
    return false;
  }
  fabric_ = fabric;
  allocations_[record.id()] = record;
  return true;
}

std::uint64_t Loop::grant(const Caller& caller, const v1::GrantAllocationRequest& request,
                          Time now) {
  require_scheduler(caller);
  require_lead();
  check_name(request.name());
  const std::vector<std::string> hosts = hosts_in(request.hosts());
  check_tenant_has(caller, request.tenant(), hosts);
  std::optional<v1::AllocationRecord> replaced;
  if (allocation_named(request.name()) != nullptr) {
    const v1::AllocationRecord& before = allocation_of(caller, request.name());
    if (!request.anew()) {
      check_is_same(before, request, hosts);
      return before.id();
    }
    replaced = before;
  }
  v1::FabricRecord next = fabric_;
  v1::AllocationRecord record;
  record.set_schema(kSchema);
  record.set_id(std::max<std::uint64_t>(1, fabric_.next_allocation()));
  record.set_name(request.name());
  record.set_tenant(request.tenant());
  record.mutable_hosts()->Add(hosts.begin(), hosts.end());
  record.set_granted_by(caller.name);
  next.set_next_allocation(record.id() + 1);
  if (!save(record, next, replaced ? std::optional(replaced->id()) : std::nullopt)) {
    throw Refused(Code::unavailable, why_idle());
  }
  if (replaced) {
    end_jobs_of(caller, *replaced, now);
  }
  return record.id();
}

/// Of one that the store has no more.
std::vector<std::uint64_t> Loop::end_jobs_of(const Caller& caller,
                                             const v1::AllocationRecord& ended, Time now) {
  allocations_.erase(ended.id());
  const std::string why = fmt::format("allocation {} was ended by {}", ended.name(),
                                      caller.name.empty() ? "root" : caller.name);
  outside_.note("allocation_ended", why);
  std::vector<std::uint64_t> jobs;
  for (const auto& [job, record] : records_) {
    if (record.request().allocation() == ended.id()) {
      jobs.push_back(job);
    }
  }
  for (const std::uint64_t job : jobs) {
    begin_end(job, why, now);
  }
  step(now);
  return jobs;
}

std::vector<std::uint64_t> Loop::end_allocation(const Caller& caller, const std::string& name,
                                                Time now) {
  require_scheduler(caller);
  require_lead();
  check_name(name);
  const v1::AllocationRecord ended = allocation_of(caller, name);
  if (!save({{allocation_key(ended.id()), std::nullopt}})) {
    throw Refused(Code::unavailable, why_idle());
  }
  return end_jobs_of(caller, ended, now);
}

std::uint64_t Loop::issue_token(const Caller& caller, const std::string& name,
                                const std::string& token) {
  require_lead();
  check_name(name);
  const v1::AllocationRecord* const found = allocation_named(name);
  if (found == nullptr || !has_host(*found, caller.name)) { // as if it were not there
    throw Refused(Code::not_allowed,
                  fmt::format("certificate: found '{}'; allowed: that of a host of {}, while it is "
                              "granted",
                              caller.name, name));
  }
  v1::AllocationRecord record = *found;
  add_token(record, caller.name, digest_of(token));
  if (!save(record, fabric_)) {
    throw Refused(Code::unavailable, why_idle());
  }
  return record.id();
}

/// As the store has it, or as the job tells it where the store has lost it too: with the job's
/// hosts, and the token by which its owner comes back. One that was granted before under the same
/// name has another number, and is another one.
v1::AllocationRecord Loop::allocation_of(const v1::FabricLabel& label,
                                         const v1::JobRecord& record) const {
  v1::AllocationRecord known;
  const auto stored = allocations_.find(label.allocation_number());
  const bool is_taken = stored != allocations_.end();
  if (is_taken && stored->second.name() == label.allocation()) {
    known = stored->second;
  } else {
    known.set_schema(kSchema);
    known.set_id(is_taken ? fabric_.next_allocation() : label.allocation_number());
    known.set_name(label.allocation());
    known.set_tenant(label.tenant());
    known.set_granted_by(label.granted_by());
  }
  for (const std::string& host : record.hosts()) {
    if (!has_host(known, host)) {
      known.add_hosts(host);
    }
  }
  if (token_in(known, label.token_sha256()) == nullptr) {
    add_token(known, label.token_host(), label.token_sha256());
  }
  return known;
}

Caller Loop::bearer_of(const Caller& caller, std::uint64_t allocation,
                       const std::string& token) const {
  const auto found = allocations_.find(allocation);
  const std::string digest = digest_of(token);
  const v1::TokenRecord* const its =
      found == allocations_.end() ? nullptr : token_in(found->second, digest);
  if (its == nullptr) { // as if it were not there
    require_lead();
    throw Refused(Code::not_allowed,
                  fmt::format("token: found one that is not allocation {}'s; allowed: one that was "
                              "issued for it, until it ends",
                              allocation));
  }
  Caller bearer = caller;
  bearer.is_operator = false;
  bearer.allocation = allocation;
  bearer.token = *its;
  return bearer;
}

/// Of a caller by token: with his tenant, and without the token.
v1::HoldJobRequest Loop::as_of(const Caller& caller, v1::HoldJobRequest request) const {
  request.clear_token();
  request.set_allocation(caller.allocation);
  if (caller.allocation == 0) {
    return request;
  }
  const v1::AllocationRecord& allocation = allocations_.at(caller.allocation);
  if (!request.tenant().empty() && request.tenant() != allocation.tenant()) {
    throw Refused(Code::not_allowed,
                  fmt::format("tenant: found '{}'; allowed: '{}', whose allocation {} is",
                              request.tenant(), allocation.tenant(), allocation.name()));
  }
  request.set_tenant(allocation.tenant());
  return request;
}

void Loop::check_allocation_has(const Caller& caller, int rank, const std::string& host) const {
  if (caller.allocation == 0) {
    return;
  }
  const auto found = allocations_.find(caller.allocation);
  if (found == allocations_.end()) {
    throw Refused(Code::not_allowed, fmt::format("allocation {} has ended", caller.allocation));
  }
  if (!has_host(found->second, host)) {
    throw Refused(Code::not_allowed,
                  fmt::format("rank {}: found {}, which is not of allocation {}; allowed: {}", rank,
                              host, found->second.name(), names_in_words(found->second.hosts())));
  }
}

/// Found by a step: who had it ended did not come to its jobs.
bool Loop::has_lost_allocation(const v1::JobRecord& record) const {
  return record.request().allocation() != 0 &&
         !allocations_.contains(record.request().allocation());
}

std::vector<v1::Allocation> Loop::allocations(const Caller& caller) const {
  require_scheduler(caller);
  std::vector<v1::Allocation> list;
  for (const auto& [id, record] : allocations_) {
    if (!caller.is_operator && record.granted_by() != caller.name) {
      continue;
    }
    v1::Allocation& one = list.emplace_back();
    one.set_id(id);
    one.set_name(record.name());
    one.set_tenant(record.tenant());
    *one.mutable_hosts() = record.hosts();
    one.set_granted_by(record.granted_by());
    for (const auto& [job, of_job] : records_) {
      if (of_job.request().allocation() == id) {
        one.add_jobs(job);
      }
    }
  }
  return list;
}

} // namespace weir::jobs
