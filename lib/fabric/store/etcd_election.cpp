// SPDX-License-Identifier: BSD-3-Clause
#include "store/etcd_election.hpp"

#include "store/boot_time.hpp"

#include <chrono>
#include <etcd/election.pb.h>
#include <etcd/rpc.pb.h>
#include <optional>
#include <utility>

namespace weir::store {
namespace {

constexpr std::int64_t kLeaseSeconds = 5;
constexpr std::uint64_t kLeaseMs = kLeaseSeconds * 1000;
constexpr std::chrono::milliseconds kBeat{1000}; // between two signs of life
constexpr std::uint64_t kHeardMs = 3000;
constexpr unsigned kCountBeats = 5; // between two counts; who dies keeps his key as long

} // namespace

/// Its call is answered when it is won. Ended before that, etcd takes the key away, perhaps later
/// than one thinks: so no lease has two of them.
class EtcdElection::Campaign {
 public:
  Campaign(EtcdCalls& calls, const v3electionpb::CampaignRequest& request)
      : member_(calls.member()), entered_(calls, context_),
        call_(calls.stub(member_).PrepareUnaryCall(&context_, "/v3electionpb.Election/Campaign",
                                                   request, &queue_)) {
    call_->StartCall();
    call_->Finish(&response_, &status_, nullptr);
  }

  ~Campaign() {
    context_.TryCancel();
    drain(queue_);
  }

  Campaign(const Campaign&) = delete;
  Campaign& operator=(const Campaign&) = delete;

  std::size_t member() const { return member_; }

  /// Its answer, if it comes within so long.
  std::optional<grpc::Status> wait(std::chrono::milliseconds longest) {
    void* tag = nullptr;
    bool is_done = false;
    const auto end = std::chrono::system_clock::now() + longest;
    return queue_.AsyncNext(&tag, &is_done, end) == grpc::CompletionQueue::GOT_EVENT
               ? std::optional(status_)
               : std::nullopt;
  }

  const v3electionpb::LeaderKey& won() const { return response_.leader(); }

 private:
  const std::size_t member_;
  grpc::ClientContext context_;
  const EtcdCalls::Entered entered_;
  grpc::CompletionQueue queue_;
  v3electionpb::CampaignResponse response_;
  grpc::Status status_;
  const std::unique_ptr<grpc::ClientAsyncResponseReader<EtcdCalls::Message>> call_;
};

EtcdElection::EtcdElection(EtcdCalls& calls, std::string name, std::string value)
    : calls_(calls), name_(std::move(name)), value_(std::move(value)), thread_([this] { run(); }) {}

EtcdElection::~EtcdElection() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    stopped_.notify_all();
  }
  if (!is_heard()) {
    calls_.stop(); // nobody takes the lease back either
  }
  thread_.join();
}

Leadership EtcdElection::leadership() const {
  const std::lock_guard lock(mutex_);
  const bool is_late = boot_time_ms() >= heard_ms_ + kLeaseMs;
  return {standing_ == Standing::leads && is_late ? Standing::in_doubt : standing_,
          static_cast<std::uint64_t>(key_.revision), leader_, standbys_, trouble_};
}

void EtcdElection::note_answer(const grpc::Status& status) {
  const std::lock_guard lock(mutex_);
  trouble_ = status.ok() ? "" : status.error_message();
}

EtcdElection::Key EtcdElection::key() const {
  const std::lock_guard lock(mutex_);
  return key_;
}

bool EtcdElection::is_heard() const {
  const std::lock_guard lock(mutex_);
  return boot_time_ms() < heard_ms_ + kHeardMs;
}

void EtcdElection::lose() {
  enter(Standing::over);
}

/// What is over stays so.
void EtcdElection::enter(Standing standing) {
  const std::lock_guard lock(mutex_);
  standing_ = standing_ == Standing::over ? Standing::over : standing;
}

bool EtcdElection::is_stopped() const {
  const std::lock_guard lock(mutex_);
  return is_stopped_;
}

/// False: it is stopped.
bool EtcdElection::pause() {
  std::unique_lock lock(mutex_);
  return !stopped_.wait_for(lock, kBeat, [this] { return is_stopped_; });
}

void EtcdElection::run() {
  while (!is_stopped()) {
    if (!grant()) {
      pause();
      continue;
    }
    if (win()) {
      hold();
      revoke();
      return;
    }
    revoke();
  }
}

bool EtcdElection::grant() {
  etcdserverpb::LeaseGrantRequest request;
  etcdserverpb::LeaseGrantResponse response;
  request.set_ttl(kLeaseSeconds);
  const std::uint64_t asked_at = boot_time_ms();
  const grpc::Status status = calls_.ask("/etcdserverpb.Lease/LeaseGrant", request, response);
  const bool is_granted = status.ok();
  note_answer(status);
  lease_ = is_granted ? response.id() : 0;
  const std::lock_guard lock(mutex_);
  heard_ms_ = is_granted ? asked_at : heard_ms_;
  return is_granted;
}

/// False: it begins anew, with another lease.
bool EtcdElection::win() {
  v3electionpb::CampaignRequest request;
  request.set_name(name_);
  request.set_lease(lease_);
  request.set_value(value_);
  Campaign campaign(calls_, request);
  while (!is_stopped()) {
    if (const auto answer = campaign.wait(kBeat)) {
      if (!answer->ok()) {
        note_answer(*answer);
        pause();
        return false;
      }
      if (keep_alive() != Pulse::alive) {
        return false; // it has won while nobody looked
      }
      const std::lock_guard lock(mutex_);
      key_ = {campaign.won().key(), campaign.won().rev()};
      leader_ = value_;
      standing_ = Standing::leads;
      return true;
    }
    look_for_leader();
    if (keep_alive() != Pulse::alive || campaign.member() != calls_.member()) {
      return false;
    }
  }
  return false;
}

void EtcdElection::hold() {
  for (unsigned beat = 0; pause(); ++beat) {
    const Pulse pulse = keep_alive();
    if (pulse == Pulse::gone) {
      look_for_leader();
      lose();
      return;
    }
    if (pulse == Pulse::alive && beat % kCountBeats == 0) {
      count_standbys();
    }
  }
}

EtcdElection::Pulse EtcdElection::keep_alive() {
  etcdserverpb::LeaseKeepAliveRequest request;
  etcdserverpb::LeaseKeepAliveResponse response;
  request.set_id(lease_);
  const std::uint64_t asked_at = boot_time_ms();
  if (!calls_.ask_stream("/etcdserverpb.Lease/LeaseKeepAlive", request, response).ok()) {
    return Pulse::silent;
  }
  if (response.ttl() <= 0) {
    return Pulse::gone;
  }
  const std::lock_guard lock(mutex_);
  heard_ms_ = asked_at;
  return Pulse::alive;
}

/// The oldest of those that want to lead does.
void EtcdElection::look_for_leader() {
  etcdserverpb::RangeRequest request;
  etcdserverpb::RangeResponse response;
  request.set_key(name_ + "/");
  request.set_range_end(name_ + "0"); // the character after '/'
  request.set_limit(1);
  request.set_sort_order(etcdserverpb::RangeRequest::ASCEND);
  request.set_sort_target(etcdserverpb::RangeRequest::CREATE);
  const bool is_answered = calls_.ask("/etcdserverpb.KV/Range", request, response).ok();
  const std::lock_guard lock(mutex_);
  leader_ = is_answered && response.kvs_size() != 0 ? response.kvs(0).value() : "";
}

/// Each that wants to lead has a key, the leader too. The member that is asked answers alone: that
/// the others agree, it shows by keeping the lease.
void EtcdElection::count_standbys() {
  etcdserverpb::RangeRequest request;
  etcdserverpb::RangeResponse response;
  request.set_key(name_ + "/");
  request.set_range_end(name_ + "0");
  request.set_count_only(true);
  request.set_serializable(true);
  const bool is_answered = calls_.ask("/etcdserverpb.KV/Range", request, response).ok();
  const std::lock_guard lock(mutex_);
  standbys_ = is_answered && response.count() != 0
                  ? std::optional(static_cast<std::uint64_t>(response.count()) - 1)
                  : std::nullopt;
}

void EtcdElection::revoke() {
  etcdserverpb::LeaseRevokeRequest request;
  etcdserverpb::LeaseRevokeResponse response;
  request.set_id(lease_);
  calls_.ask("/etcdserverpb.Lease/LeaseRevoke", request, response);
}

} // namespace weir::store
