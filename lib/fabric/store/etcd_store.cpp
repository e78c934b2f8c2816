// SPDX-License-Identifier: BSD-3-Clause
#include "store/etcd_store.hpp"

#include "store/etcd_election.hpp"

#include <fmt/format.h>

#include <chrono>
#include <etcd/rpc.pb.h>
#include <utility>

namespace weir::store {
namespace {

constexpr const char* kElection = "leader";         // the election's keys lie below it
constexpr const char* kWritten = "written";         // each transaction writes it
constexpr std::chrono::seconds kPatienceForAll{10}; // for the records of a large fabric

bool is_record(const std::string& key) {
  return key != kWritten && !key.starts_with(std::string(kElection) + "/");
}

} // namespace

struct EtcdStore::Parts {
  Parts(const EtcdAccess& access, const std::string& fabric, const std::string& manager)
      : prefix(fmt::format("/weir/{}/", fabric)), calls(access),
        election(calls, prefix + kElection, manager) {}

  std::optional<etcdserverpb::RangeResponse>
  range(const std::string& key, const std::string& end,
        std::chrono::milliseconds patience = EtcdCalls::kMemberPatience);
  bool find_last_write();
  etcdserverpb::TxnRequest transaction(std::span<const Change> changes) const;
  Written look_why(const etcdserverpb::TxnResponse& response);

  std::string mark() const { return fmt::format("{}.{}", election.key().revision, writes); }

  const std::string prefix;
  EtcdCalls calls;
  EtcdElection election;
  std::uint64_t writes = 0; // that were tried
  // The revision of the last write that is known. A transaction that comes late, after one that was
  // asked for later, finds another one and does nothing.
  std::optional<std::int64_t> last_write;
};

EtcdStore::EtcdStore(const EtcdAccess& access, const std::string& fabric,
                     const std::string& manager)
    : parts_(std::make_unique<Parts>(access, fabric, manager)) {}

EtcdStore::~EtcdStore() = default;

Leadership EtcdStore::leadership() {
  return parts_->election.leadership();
}

std::optional<etcdserverpb::RangeResponse>
EtcdStore::Parts::range(const std::string& key, const std::string& end,
                        std::chrono::milliseconds patience) {
  etcdserverpb::RangeRequest request;
  etcdserverpb::RangeResponse response;
  request.set_key(key);
  request.set_range_end(end);
  if (!election.is_heard()) {
    return std::nullopt;
  }
  const grpc::Status status = calls.ask("/etcdserverpb.KV/Range", request, response, patience);
  election.note_answer(status);
  return status.ok() ? std::optional(std::move(response)) : std::nullopt;
}

std::optional<std::vector<Item>> EtcdStore::read_all() {
  Parts& parts = *parts_;
  std::string end = parts.prefix;
  end.back() = '/' + 1;
  const auto response = parts.range(parts.prefix, end, kPatienceForAll);
  if (!response) {
    return std::nullopt;
  }
  std::vector<Item> items;
  parts.last_write = 0;
  for (const mvccpb::KeyValue& pair : response->kvs()) {
    std::string key = pair.key().substr(parts.prefix.size());
    if (key == kWritten) {
      parts.last_write = pair.mod_revision();
    } else if (is_record(key)) {
      items.push_back({std::move(key), pair.value()});
    }
  }
  return items;
}

std::optional<std::string> EtcdStore::read(const std::string& key) {
  const auto response = parts_->range(parts_->prefix + key, {});
  if (!response) {
    return std::nullopt;
  }
  return response->kvs_size() == 0 ? std::string() : response->kvs(0).value();
}

bool EtcdStore::Parts::find_last_write() {
  const auto response = range(prefix + kWritten, {});
  if (response) {
    last_write = response->kvs_size() == 0 ? 0 : response->kvs(0).mod_revision();
  }
  return response.has_value();
}

/// If it is not done, its answer has who leads and the last write.
etcdserverpb::TxnRequest EtcdStore::Parts::transaction(std::span<const Change> changes) const {
  const EtcdElection::Key leader = election.key();
  etcdserverpb::TxnRequest request;
  etcdserverpb::Compare& leads = *request.add_compare();
  leads.set_target(etcdserverpb::Compare::CREATE);
  leads.set_key(leader.key);
  leads.set_create_revision(leader.revision);
  etcdserverpb::Compare& is_last = *request.add_compare();
  is_last.set_target(etcdserverpb::Compare::MOD);
  is_last.set_key(prefix + kWritten);
  is_last.set_mod_revision(*last_write);
  for (const Change& change : changes) {
    etcdserverpb::RequestOp& step = *request.add_success();
    if (change.value) {
      step.mutable_request_put()->set_key(prefix + change.key);
      step.mutable_request_put()->set_value(*change.value);
    } else {
      step.mutable_request_delete_range()->set_key(prefix + change.key);
    }
  }
  etcdserverpb::PutRequest& written = *request.add_success()->mutable_request_put();
  written.set_key(prefix + kWritten);
  written.set_value(mark());
  request.add_failure()->mutable_request_range()->set_key(leader.key);
  request.add_failure()->mutable_request_range()->set_key(prefix + kWritten);
  return request;
}

/// A comparison has failed. The request may have been done when it was asked before.
Written EtcdStore::Parts::look_why(const etcdserverpb::TxnResponse& response) {
  const auto& leader = response.responses(0).response_range();
  const auto& written = response.responses(1).response_range();
  if (leader.kvs_size() == 0 || leader.kvs(0).create_revision() != election.key().revision) {
    election.lose();
    return Written::fenced;
  }
  last_write.reset();
  if (written.kvs_size() != 0 && written.kvs(0).value() == mark()) {
    last_write = written.kvs(0).mod_revision();
    return Written::done;
  }
  return Written::lost;
}

Written EtcdStore::write(std::span<const Change> changes) {
  Parts& parts = *parts_;
  switch (parts.election.leadership().standing) {
  case Standing::leads:
    break;
  case Standing::in_doubt:
    return Written::lost;
  default:
    return Written::fenced;
  }
  if (!parts.election.is_heard() || (!parts.last_write && !parts.find_last_write())) {
    return Written::lost;
  }
  ++parts.writes;
  etcdserverpb::TxnResponse response;
  const grpc::Status status =
      parts.calls.ask("/etcdserverpb.KV/Txn", parts.transaction(changes), response);
  parts.election.note_answer(status);
  if (!status.ok()) {
    return Written::lost;
  }
  if (!response.succeeded()) {
    return parts.look_why(response);
  }
  parts.last_write = response.header().revision();
  return Written::done;
}

} // namespace weir::store
