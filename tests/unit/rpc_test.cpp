// SPDX-License-Identifier: BSD-3-Clause
#include "command/commands.hpp"
#include "gate/tls_files.hpp"
#include "net/listening_socket.hpp"
#include "net/open_connections.hpp"
#include "net/request_shares.hpp"
#include "report/answers.hpp"
#include "rpc/client.hpp"
#include "rpc/endpoint.hpp"
#include "rpc/fabric_term.hpp"
#include "rpc/messages.hpp"
#include "rpc/ring_messages.hpp"
#include "rpc/service.hpp"
#include "support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/server_builder.h>
#include <map>
#include <mutex>
#include <semaphore>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

namespace weir::rpc::rpc_test {
namespace {

using namespace std::chrono_literals;
using net::ListenError;
using net::ListeningSocket;
using net::OpenConnections;
using net::RequestShares;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Lt;

class Folder {
 public:
  std::string socket() const { return (folder_.path() / "control.sock").string(); }

 private:
  const test::TemporaryFolder folder_{"weir-rpc"};
};

constexpr std::array kColumns{report::Column{"port", "port"}, report::Column{"rx", "rx packets"},
                              report::Column{"load", "load"}};
constexpr report::TableShape kPorts{"ports", kColumns, "a note"};

report::Report two_ports() {
  report::Table table(kPorts);
  table.rows = {{std::string("p0"), std::uint64_t{1} << 63, 0.5},
                {std::string("\xc3\xa4 \"p1\""), std::uint64_t{0}, 1e300}};
  report::Table none(kPorts);
  none.note.clear();
  return {table, none};
}

/// The rings that were made and are still there.
class MadeRings {
 public:
  ring::RingBirth make(const ring::RingSpec& ring) {
    const std::lock_guard lock(mutex_);
    rings_[++last_] = ring;
    changed_.notify_all();
    return last_;
  }

  void remove(ring::RingBirth birth) {
    const std::lock_guard lock(mutex_);
    rings_.erase(birth);
    changed_.notify_all();
  }

  bool has(ring::RingBirth birth) {
    const std::lock_guard lock(mutex_);
    return rings_.contains(birth);
  }

  std::vector<std::uint32_t> ids() {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint32_t> ids;
    for (const auto& [birth, ring] : rings_) {
      ids.push_back(ring.id);
    }
    return ids;
  }

  void wait_until_made(ring::RingBirth last) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return last_ == last; });
  }

  void wait_until_left(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return rings_.size() == count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<ring::RingBirth, ring::RingSpec> rings_;
  ring::RingBirth last_ = 0;
};

/// Answers what it is told to answer.
class Desk : public Backend {
 public:
  std::function<command::Answer(const command::Words&)> on_execute = [](const auto&) {
    return two_ports();
  };
  std::function<void()> on_add = [] {};
  std::atomic<bool> lcores_work{true};
  std::counting_semaphore<> tried{0}; // to remove a ring in vain

  command::Answer execute(const command::Words& words, const Principal&) override {
    return on_execute(words);
  }

  report::Report ask(const command::Words& words, const Principal&) override {
    if (words.front() == "reset") {
      throw command::WrongWords("no question");
    }
    return std::get<report::Report>(on_execute(words));
  }

  command::Words completions(std::string_view line, const Principal&) override {
    return {std::string(line), "b"};
  }

  std::vector<ListedRing> rings() override {
    const auto member = [](const char* ip, std::optional<std::uint16_t> port) {
      return ring::Member{*wire::parse_ip(ip), port};
    };
    return {{.spec = {.id = 7,
                      .window = 16,
                      .max_message_bytes = 4096,
                      .mtu = 2048,
                      .patience_ms = 5000,
                      .keep_alive = ring::KeepAlive::rnr,
                      .lease_ms = 60'000,
                      .members = {member("10.0.0.1", 1), member("10.0.0.2", std::nullopt)}},
             .connected = 1,
             .held = 2,
             .slots_completed = 3,
             .results = 4,
             .draining_s = 0}};
  }

  void add_ring(const ring::RingSpec& ring, const Principal& principal) override {
    ring::RingSpec held = ring;
    hold_ring(held, principal);
  }

  ring::RingBirth hold_ring(ring::RingSpec& ring, const Principal&) override {
    on_add();
    if (ring.id == 7) {
      throw RingExists("7 is taken");
    }
    if (ring.id == 8) {
      throw control::NoRoomForRing("no room");
    }
    if (ring.id == 10) {
      throw control::RingRefused("another port");
    }
    added = ring;
    return made.make(ring);
  }

  void remove_ring(std::uint32_t id, const Principal&) override {
    if (id != 7) {
      throw control::NoSuchRing("there is 7");
    }
  }

  void drain_ring(std::uint32_t id, std::chrono::seconds quiet, const Principal& caller) override {
    remove_ring(id, caller);
    drained_for = quiet;
  }

  void remove_orphan(ring::RingBirth birth) override {
    if (!lcores_work) {
      tried.release();
      throw lcore::LcoreError(1, "lcore 1 hangs");
    }
    made.remove(birth);
  }

  bool has_ring(ring::RingBirth birth) override { return made.has(birth); }

  std::shared_ptr<const config::Config> config() override {
    return std::make_shared<const config::Config>(config_);
  }

  MadeRings made;

  ring::RingSpec added;
  std::chrono::seconds drained_for{};

  void check_lcores() override {
    if (!lcores_work) {
      throw lcore::LcoreError(1, "lcore 1 hangs");
    }
  }

 private:
  const config::Config config_ =
      config::parse_config("ports: [{name: p0, device: a}, {name: p1, device: b}]", "f");
};

config::ControlConfig at(const std::string& path) {
  config::ControlConfig where;
  where.local = {path};
  return where;
}

/// Is told what operators should know.
constexpr auto kNobody = [](gate::Incident, const std::string&) {};

/// A service at a socket, and a client's stub.
class Control : public testing::Test {
 protected:
  std::unique_ptr<v1::Switch::Stub> new_stub(grpc::ChannelArguments own = {}) const {
    // A connection that no other stub shares.
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::Switch::NewStub(grpc::CreateCustomChannel("unix:" + folder_.socket(),
                                                         grpc::InsecureChannelCredentials(), own));
  }

  grpc::Status execute(const command::Words& words) {
    grpc::ClientContext context;
    v1::ExecuteRequest request;
    for (const std::string& word : words) {
      request.add_words(word);
    }
    return stub_->Execute(&context, request, &response_);
  }

  Folder folder_;
  Desk desk_;
  std::optional<Endpoint> endpoint_{std::in_place, desk_, at(folder_.socket()), kNobody};
  std::unique_ptr<v1::Switch::Stub> stub_ = new_stub();
  v1::ExecuteResponse response_;
};

TEST_F(Control, ClientPrintsAnswersAsThePromptDoes) {
  Client client("unix:" + folder_.socket(), {});
  EXPECT_EQ(client.execute({"show", "port"}), to_text(two_ports()));
  EXPECT_EQ(client.execute({"show", "port", "json"}), to_json(two_ports()));
  desk_.on_execute = [](const command::Words& words) { return "said " + words.back() + "\n"; };
  EXPECT_EQ(client.execute({"say", "a b"}), "said a b\n");
  EXPECT_THAT(client.complete("sh"), ElementsAre("sh", "b"));
}

TEST_F(Control, ListsRingsAsTheyAreConfigured) {
  grpc::ClientContext context;
  v1::ListRingsResponse response;
  ASSERT_TRUE(stub_->ListRings(&context, {}, &response).ok());
  ASSERT_EQ(response.rings_size(), 1);
  EXPECT_EQ(response.rings(0).ShortDebugString(),
            "ring { id: 7 window: 16 max_message_bytes: 4096 mtu: 2048 patience: 5 "
            "keep_alive: KEEP_ALIVE_RNR members { ip: \"10.0.0.1\" port: \"p1\" } "
            "members { ip: \"10.0.0.2\" } lease: 60 } "
            "connected: 1 held: 2 slots_completed: 3 results: 4 draining: 0");
}

TEST_F(Control, EachExceptionHasItsStatusAndItsWords) {
  using grpc::StatusCode;

  struct Row {
    StatusCode code;
    std::function<void()> fail;
  };

  const std::vector<Row> rows{
      {StatusCode::INVALID_ARGUMENT, [] { throw command::WrongWords("why"); }},
      {StatusCode::NOT_FOUND, [] { throw report::UnknownName("why"); }},
      {StatusCode::FAILED_PRECONDITION, [] { throw control::CaptureRuns("why"); }},
      {StatusCode::FAILED_PRECONDITION, [] { throw capture::FileError("why"); }},
      {StatusCode::UNAVAILABLE, [] { throw lcore::LcoreError(1, "why"); }},
      {StatusCode::INTERNAL, [] { throw std::runtime_error("why"); }},
  };
  for (const Row& row : rows) {
    desk_.on_execute = [&row](const auto&) {
      row.fail();
      return std::string();
    };
    const grpc::Status status = execute({"x"});
    EXPECT_EQ(status.error_code(), row.code);
    EXPECT_EQ(status.error_message(), "why");
  }
}

TEST_F(Control, AClaimThatIsRefusedHasItsDetails) {
  desk_.on_execute = [](const auto&) -> command::Answer { throw TermOver("why", "who"); };
  const grpc::Status status = execute({"x"});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(status.error_message(), "why");
  EXPECT_EQ(status.error_details(), "who");
}

v1::Ring ring_of_two() {
  v1::Ring ring;
  ring.set_id(9);
  ring.set_window(4);
  ring.set_max_message_bytes(4096);
  ring.add_members()->set_ip("10.0.0.1");
  ring.add_members()->set_ip("10.0.0.2");
  ring.mutable_members(1)->set_port("p1");
  return ring;
}

TEST_F(Control, AddsARingWithTheDefaultsOfTheFile) {
  const auto add = [this](const v1::Ring& ring) {
    grpc::ClientContext context;
    v1::AddRingRequest request;
    v1::AddRingResponse response;
    *request.mutable_ring() = ring;
    return stub_->AddRing(&context, request, &response);
  };
  v1::Ring ring = ring_of_two();
  ASSERT_TRUE(add(ring).ok());
  EXPECT_EQ(desk_.added.id, 9U);
  EXPECT_EQ(desk_.added.window, 4U);
  EXPECT_EQ(desk_.added.max_message_bytes, 4096U);
  EXPECT_EQ(desk_.added.mtu, 1024);
  EXPECT_EQ(desk_.added.patience_ms, 600'000U);
  EXPECT_EQ(desk_.added.lease_ms, 3'600'000U);
  EXPECT_EQ(desk_.added.keep_alive, ring::KeepAlive::ack);
  ASSERT_EQ(desk_.added.members.size(), 2U);
  EXPECT_EQ(wire::to_string(desk_.added.members[0].ip), "10.0.0.1");
  EXPECT_EQ(desk_.added.members[0].port, std::nullopt);
  EXPECT_EQ(desk_.added.members[1].port, 1);
  ring.set_mtu(256);
  ring.set_patience(5);
  ring.set_lease(6);
  ring.set_keep_alive(v1::Ring::KEEP_ALIVE_OFF);
  ASSERT_TRUE(add(ring).ok());
  EXPECT_EQ(desk_.added.mtu, 256);
  EXPECT_EQ(desk_.added.patience_ms, 5'000U);
  EXPECT_EQ(desk_.added.lease_ms, 6'000U);
  EXPECT_EQ(desk_.added.keep_alive, ring::KeepAlive::off);
  ring.set_id(7);
  EXPECT_EQ(add(ring).error_code(), grpc::StatusCode::ALREADY_EXISTS);
  ring.set_id(8);
  EXPECT_EQ(add(ring).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ring.set_id(10);
  EXPECT_EQ(add(ring).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

/// Rank 1 of three is behind this switch, rank 2 behind one below; rank 0 is the parent's.
v1::Ring ring_of_a_tree() {
  v1::Ring ring = ring_of_two();
  ring.mutable_members(1)->clear_port();
  ring.add_members()->set_ip("10.0.0.3");
  ring.mutable_parent()->set_name("spine");
  ring.mutable_parent()->set_port("p0");
  ring.add_children()->set_rank(1);
  v1::Child& below = *ring.add_children();
  below.mutable_switch_below()->set_name("rack");
  below.mutable_switch_below()->set_first_rank(2);
  below.mutable_switch_below()->set_last_rank(2);
  below.set_port("p1");
  return ring;
}

TEST_F(Control, ARingsPlaceInATreeIsToldAsItIsRead) {
  const v1::Ring sent = ring_of_a_tree();
  const ring::RingSpec ring = ring_of(sent, *desk_.config());
  ASSERT_TRUE(ring.parent);
  EXPECT_EQ(ring.parent->name, "spine");
  EXPECT_EQ(ring.parent->port, 0);
  ASSERT_EQ(ring.children.size(), 2U);
  EXPECT_EQ(ring.children[0].kind, ring::ChildKind::rank);
  EXPECT_EQ(ring.children[0].ranks.first, 1);
  EXPECT_EQ(ring.children[0].port, std::nullopt);
  EXPECT_EQ(ring.children[1].kind, ring::ChildKind::switch_below);
  EXPECT_EQ(ring.children[1].name, "rack");
  EXPECT_EQ(ring.children[1].ranks.last(), 2);
  EXPECT_EQ(ring.children[1].port, 1);
  v1::Ring told;
  write(ring, *desk_.config(), told);
  EXPECT_EQ(told.children_size(), 2);
  EXPECT_EQ(told.children(1).ShortDebugString(), sent.children(1).ShortDebugString());
  EXPECT_EQ(told.parent().ShortDebugString(), sent.parent().ShortDebugString());
  EXPECT_EQ(ring_of(told, *desk_.config()).children.size(), 2U) << "and is read again";
  told.clear_parent();
  told.mutable_children(0)->set_rank(0);
  told.mutable_children(1)->mutable_switch_below()->set_first_rank(1);
  EXPECT_FALSE(ring_of(told, *desk_.config()).parent) << "the root's";
}

TEST_F(Control, ARingOfATreeBreaksTheRulesOfTheFileInItsWords) {
  struct Row {
    const char* error;
    std::function<void(v1::Ring&)> change;
  };

  const std::vector<Row> rows{
      {"ring:1: children[0]: found neither rank: nor switch:; allowed: {rank: NUMBER}, or",
       [](v1::Ring& ring) { ring.mutable_children(0)->clear_rank(); }},
      {"ring:1: children[0].rank: found rank 3 with 3 members; allowed: ranks of the ring",
       [](v1::Ring& ring) { ring.mutable_children(0)->set_rank(3); }},
      {"ring:1: children[1].ranks: found [2, 1]; allowed: the first rank first, as [1, 2]",
       [](v1::Ring& ring) { ring.mutable_children(1)->mutable_switch_below()->set_last_rank(1); }},
      {"ring:1: children[1].ranks: found ranks 1 to 2 after rank 1; allowed: a child that begins",
       [](v1::Ring& ring) { ring.mutable_children(1)->mutable_switch_below()->set_first_rank(1); }},
      {"ring:1: children[1].port: found nothing: the key is missing; allowed: p0 or p1",
       [](v1::Ring& ring) { ring.mutable_children(1)->clear_port(); }},
      {"ring:1: children[1].port: found \"p0\", which parent.port on line 1 has too; allowed: a "
       "port of its own",
       [](v1::Ring& ring) { ring.mutable_children(1)->set_port("p0"); }},
      {"ring:1: children[1].switch: found \"rack, port: p0\"; allowed: a name of at most 64",
       [](v1::Ring& ring) {
         ring.mutable_children(1)->mutable_switch_below()->set_name("rack, port: p0");
       }},
      {"ring:1: children: found children for ranks 1 to 2 of 3, and no parent:; allowed: children",
       [](v1::Ring& ring) { ring.clear_parent(); }},
      {"ring:1: parent: found a parent, and no children:, so that all ranks are; allowed:",
       [](v1::Ring& ring) { ring.clear_children(); }},
      {"ring:1: parent.port: found nothing: the key is missing; allowed: p0 or p1",
       [](v1::Ring& ring) { ring.mutable_parent()->clear_port(); }},
      {"ring:1: members[0].port: found \"p1\" beside children:; allowed: port: in the entry",
       [](v1::Ring& ring) { ring.mutable_members(0)->set_port("p1"); }},
  };
  for (const Row& row : rows) {
    v1::Ring ring = ring_of_a_tree();
    row.change(ring);
    try {
      ring_of(ring, *desk_.config());
      ADD_FAILURE() << "accepted, but should be: " << row.error;
    } catch (const config::ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(row.error));
    }
  }
}

TEST_F(Control, ARingBreaksTheRulesOfTheFileInItsWords) {
  struct Row {
    const char* error;
    std::function<void(v1::Ring&)> change;
  };

  const std::vector<Row> rows{
      {"ring:1: window: found 0; allowed: a whole number, 1 to 1024",
       [](v1::Ring& ring) { ring.set_window(0); }},
      {"ring:1: max_message_bytes: found 39; allowed: a whole number, 40 to 1073741824",
       [](v1::Ring& ring) { ring.set_max_message_bytes(39); }},
      {"ring:1: mtu: found 1500; allowed: 256, 512, 1024, 2048 or 4096",
       [](v1::Ring& ring) { ring.set_mtu(1500); }},
      {"ring:1: patience: found 86401; allowed: a whole number, 1 to 86400",
       [](v1::Ring& ring) { ring.set_patience(86'401); }},
      {"ring:1: lease: found 599; allowed: at least the ring's patience, 600",
       [](v1::Ring& ring) { ring.set_lease(599); }},
      {"ring:1: keep_alive: found 99; allowed: ack, rnr or off",
       [](v1::Ring& ring) { ring.set_keep_alive(static_cast<v1::Ring::KeepAlive>(99)); }},
      {"ring:1: members[0].ip: found \"127.0.0.1\"; allowed: a unicast IPv4 or IPv6 address",
       [](v1::Ring& ring) { ring.mutable_members(0)->set_ip("127.0.0.1"); }},
      {"ring:1: members[1].port: found \"p2\"; allowed: p0 or p1",
       [](v1::Ring& ring) { ring.mutable_members(1)->set_port("p2"); }},
      {"ring:1: members[1].port: found \"p1, ip: \"10.0.0.9\"; allowed: p0 or p1",
       [](v1::Ring& ring) { ring.mutable_members(1)->set_port("p1, ip: \"10.0.0.9"); }},
      {"ring:1: members: found a list of 1; allowed: a list of 2 to 256 members",
       [](v1::Ring& ring) { ring.mutable_members()->RemoveLast(); }},
      {"control characters", [](v1::Ring& ring) { ring.mutable_members(0)->set_ip("10.0.0.1\n"); }},
  };
  for (const Row& row : rows) {
    v1::Ring ring = ring_of_two();
    row.change(ring);
    try {
      ring_of(ring, *desk_.config());
      ADD_FAILURE() << "accepted, but should be: " << row.error;
    } catch (const config::ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(row.error));
    }
  }
}

TEST_F(Control, RemovesARingThatThereIs) {
  const auto remove = [this](std::uint32_t id) {
    grpc::ClientContext context;
    v1::RemoveRingRequest request;
    v1::RemoveRingResponse response;
    request.set_id(id);
    return stub_->RemoveRing(&context, request, &response).error_code();
  };
  EXPECT_EQ(remove(7), grpc::StatusCode::OK);
  EXPECT_EQ(remove(8), grpc::StatusCode::NOT_FOUND);
}

TEST_F(Control, DrainsARingThatThereIs) {
  const auto drain = [this](std::uint32_t id, std::uint32_t quiet) {
    grpc::ClientContext context;
    v1::DrainRingRequest request;
    v1::DrainRingResponse response;
    request.set_id(id);
    request.set_quiet(quiet);
    return stub_->DrainRing(&context, request, &response);
  };
  EXPECT_TRUE(drain(7, 0).ok());
  EXPECT_EQ(desk_.drained_for.count(), 10);
  EXPECT_TRUE(drain(7, 86'400).ok());
  EXPECT_EQ(desk_.drained_for.count(), 86'400);
  EXPECT_EQ(drain(8, 1).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(drain(7, 86'401).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(drain(7, 86'401).error_message(),
            "quiet: found 86401; allowed: 1 .. 86400 seconds of silence");
}

/// An owner's call.
struct Hold {
  Hold(v1::Switch::Stub& stub, const v1::Ring& ring,
       v1::HoldRingRequest::Id id = v1::HoldRingRequest::GIVEN) {
    v1::HoldRingRequest request;
    *request.mutable_ring() = ring;
    request.set_id(id);
    stream = stub.HoldRing(&context, request);
  }

  bool read() { return stream->Read(&held); }

  /// Until the switch ends it, or after a refusal.
  grpc::Status ending() {
    while (read()) {
    }
    return stream->Finish();
  }

  grpc::ClientContext context;
  v1::HeldRing held;
  std::unique_ptr<grpc::ClientReader<v1::HeldRing>> stream;
};

v1::Ring without_id() {
  v1::Ring ring = ring_of_two();
  ring.set_id(0);
  return ring;
}

TEST_F(Control, AHeldRingIsToldOnceWithItsDefaultsAndGoesWithItsCall) {
  Hold hold(*stub_, ring_of_two());
  ASSERT_TRUE(hold.read());
  EXPECT_EQ(hold.held.ShortDebugString(),
            "ring { id: 9 window: 4 max_message_bytes: 4096 mtu: 1024 patience: 600 "
            "keep_alive: KEEP_ALIVE_ACK members { ip: \"10.0.0.1\" } "
            "members { ip: \"10.0.0.2\" port: \"p1\" } lease: 3600 } workers: 1");
  EXPECT_THAT(desk_.made.ids(), ElementsAre(9));
  hold.context.TryCancel();
  EXPECT_FALSE(hold.read()) << "a second message";
  desk_.made.wait_until_left(0);
}

TEST_F(Control, TheSwitchChoosesIdsThatNobodyCanGuess) {
  Hold zero(*stub_, without_id());
  ASSERT_TRUE(zero.read());
  EXPECT_EQ(zero.held.ring().id(), 0U) << "0 is an id, too";
  std::vector<std::uint32_t> ids;
  for (int ring = 0; ring < 8; ++ring) {
    Hold hold(*stub_, without_id(), v1::HoldRingRequest::CHOSEN_BY_SWITCH);
    ASSERT_TRUE(hold.read());
    ids.push_back(hold.held.ring().id());
    hold.context.TryCancel();
    desk_.made.wait_until_left(1);
  }
  zero.context.TryCancel();
  EXPECT_THAT(ids, Each(AllOf(Ge(1U << 16), Lt(1U << 31)))) << "docs/control.md";
  std::ranges::sort(ids);
  for (std::size_t i = 1; i < ids.size(); ++i) { // by chance once in some millions
    EXPECT_GT(ids[i] - ids[i - 1], 2U) << "one gives away another";
  }
}

TEST_F(Control, AnIdThatARingHasIsDrawnAgain) {
  int refusals = 3;
  desk_.on_add = [&refusals] {
    if (refusals != 0) {
      --refusals;
      throw RingExists("by chance");
    }
  };
  Hold hold(*stub_, without_id(), v1::HoldRingRequest::CHOSEN_BY_SWITCH);
  EXPECT_TRUE(hold.read());
  EXPECT_EQ(refusals, 0);
  hold.context.TryCancel();
}

TEST_F(Control, ARingMayBeMadeForOneNonceWhichNoAnswerTells) {
  v1::Ring ring = ring_of_two();
  ring.set_nonce(0xfeedf00d);
  Hold hold(*stub_, ring);
  ASSERT_TRUE(hold.read());
  EXPECT_EQ(desk_.added.nonce, 0xfeedf00dU);
  EXPECT_EQ(hold.held.ring().nonce(), 0U);
  hold.context.TryCancel();
}

TEST_F(Control, ARingThatIsNotMadeIsNotHeld) {
  const auto refusal = [this](std::uint32_t id, int kind) {
    v1::Ring ring = ring_of_two();
    ring.set_id(id);
    return Hold(*stub_, ring, static_cast<v1::HoldRingRequest::Id>(kind)).ending();
  };
  EXPECT_EQ(refusal(7, 0).error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(refusal(8, 0).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refusal(10, 0).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(refusal(5, 1).error_message(),
            "ring.id: found 5 where the switch chooses it; allowed: 0");
  EXPECT_EQ(refusal(0, 2).error_message(), "id: found 2; allowed: GIVEN or CHOSEN_BY_SWITCH");
  v1::Ring ring = ring_of_two();
  ring.set_window(0);
  EXPECT_THAT(Hold(*stub_, ring).ending().error_message(), HasSubstr("window: found 0"));
  EXPECT_THAT(desk_.made.ids(), ElementsAre());
}

TEST_F(Control, ACallThatEndsWhileItsRingIsMadeLeavesNone) {
  std::promise<void> is_gone;
  std::promise<void> is_called;
  desk_.on_add = [&] {
    is_called.set_value();
    is_gone.get_future().wait();
  };
  Hold hold(*stub_, ring_of_two());
  is_called.get_future().wait();
  hold.context.TryCancel();
  EXPECT_EQ(hold.ending().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_THAT(desk_.made.ids(), ElementsAre());
  is_gone.set_value();
  desk_.made.wait_until_made(1);
  desk_.made.wait_until_left(0);
}

TEST_F(Control, HoldersAreBoundedHoldNoThreadAndOneThatGoesMakesRoom) {
  std::vector<std::unique_ptr<v1::Switch::Stub>> stubs; // a connection has 64 calls
  std::vector<std::unique_ptr<Hold>> holds;
  const auto is_held = [&](v1::Switch::Stub& stub) {
    for (;; std::this_thread::sleep_for(10ms)) { // two requests of the 200 in a second
      auto hold = std::make_unique<Hold>(stub, ring_of_two());
      if (hold->read()) {
        holds.push_back(std::move(hold));
        return true;
      }
      if (hold->stream->Finish().error_message().find("requests in a second") ==
          std::string::npos) {
        return false;
      }
    }
  };
  for (std::size_t number = 0; number < 256; ++number) { // docs/control.md
    if (number % 60 == 0) {
      stubs.push_back(new_stub());
    }
    ASSERT_TRUE(is_held(*stubs.back())) << number;
  }
  EXPECT_FALSE(is_held(*stub_));
  holds.front()->context.TryCancel();
  desk_.made.wait_until_left(255);
  while (!is_held(*stub_)) {
  }
  EXPECT_EQ(desk_.made.ids().size(), 256U);
}

TEST_F(Control, HoldersAreToldThatTheSwitchStops) {
  Hold hold(*stub_, ring_of_two());
  ASSERT_TRUE(hold.read());
  endpoint_.reset();
  EXPECT_THAT(desk_.made.ids(), ElementsAre());
  const grpc::Status status = hold.ending();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "the switch stops");
}

/// A service without an endpoint that looks after it.
struct UnattendedService {
  const std::string address = "unix:" + testing::TempDir() + fmt::format("/{}.sock", getpid());
  Desk desk;
  Service service{desk};
  std::unique_ptr<grpc::Server> server =
      grpc::ServerBuilder()
          .RegisterService(&service)
          .AddListeningPort(address, grpc::InsecureServerCredentials())
          .BuildAndStart();
  std::unique_ptr<v1::Switch::Stub> stub =
      v1::Switch::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
};

TEST(HeldRings, TheirOwnersAreToldWhenSomebodyElseWithdrawsThem) {
  UnattendedService at;
  Hold first(*at.stub, ring_of_two());
  ASSERT_TRUE(first.read()); // so its ring is number 1
  Hold second(*at.stub, ring_of_two());
  ASSERT_TRUE(second.read());
  at.service.held_rings().look_after();
  at.desk.made.remove(1);
  const ring::RingBirth later = at.desk.made.make({.id = 9, .members = {}});
  const std::jthread looks(
      [&](const std::stop_token& stop) { // a call may be entered after its answer
        for (; !stop.stop_requested(); std::this_thread::sleep_for(10ms)) {
          at.service.held_rings().look_after();
        }
      });
  const grpc::Status status = first.ending();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(status.error_message(), "ring 9 was withdrawn");
  EXPECT_TRUE(at.desk.made.has(2)) << "the second owner's";
  EXPECT_TRUE(at.desk.made.has(later)) << "a later ring with the same id";
  second.context.TryCancel();
  at.desk.made.wait_until_left(1);
}

TEST(HeldRings, ThatCannotBeWithdrawnAtOnceAreLater) {
  UnattendedService at;
  Hold hold(*at.stub, ring_of_two());
  ASSERT_TRUE(hold.read());
  at.desk.lcores_work = false;
  hold.context.TryCancel();
  hold.ending();
  at.desk.tried.acquire();
  EXPECT_THAT(at.desk.made.ids(), ElementsAre(9));
  at.desk.lcores_work = true;
  while (!at.desk.made.ids().empty()) { // the call may not have told it yet
    at.service.held_rings().look_after();
  }
}

TEST_F(Control, WordsHaveLimits) {
  const auto refusal = [this](const command::Words& words) {
    const grpc::Status status = execute(words);
    EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  EXPECT_EQ(refusal(command::Words(16, "x")), "");
  EXPECT_EQ(refusal(command::Words(17, "x")), "words: found 17; allowed: 1 to 16 words");
  EXPECT_EQ(refusal({}), "words: found 0; allowed: 1 to 16 words");
  EXPECT_THAT(refusal({"show", ""}), HasSubstr("found an empty one"));
  EXPECT_EQ(refusal({std::string(4096, 'x')}), "");
  EXPECT_THAT(refusal({std::string(4097, 'x')}),
              HasSubstr("found 4097 bytes; allowed: at most 4096"));
  EXPECT_THAT(refusal({"a\nb"}), HasSubstr("with control characters"));
  EXPECT_THAT(refusal({"\x1b[2J"}), HasSubstr("with control characters"));
}

TEST_F(Control, ALongMessageIsRefusedUnread) {
  const command::Words much(5, std::string(20'000, 'x'));
  EXPECT_EQ(execute(much).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(execute({"x"}).ok()) << "the next call is served";
}

struct Watch {
  explicit Watch(v1::Switch::Stub& stub, std::uint32_t period_ms = 100, const char* word = "show") {
    v1::WatchStatisticsRequest request;
    request.add_words(word);
    request.set_period_ms(period_ms);
    stream = stub.WatchStatistics(&context, request);
  }

  bool read() { return stream->Read(&last); }

  grpc::ClientContext context;
  v1::Statistics last;
  std::unique_ptr<grpc::ClientReader<v1::Statistics>> stream;
};

TEST_F(Control, AWatcherGetsOneAnswerAfterTheOther) {
  std::atomic<std::uint64_t> asked{0};
  desk_.on_execute = [&asked](const auto&) {
    report::Report report = two_ports();
    report[0].rows[0][1] = ++asked;
    return report;
  };
  Watch watch(*stub_);
  std::uint64_t time_ns = 0;
  for (std::uint64_t number = 1; number <= 3; ++number) {
    ASSERT_TRUE(watch.read());
    EXPECT_EQ(watch.last.tables(0).rows(0).cells(1).number(), number);
    EXPECT_EQ(watch.last.tables_size(), 2);
    EXPECT_GE(watch.last.time_ns(), time_ns + (number == 1 ? 0 : 100'000'000));
    time_ns = watch.last.time_ns();
  }
  watch.context.TryCancel();
}

TEST_F(Control, AWatcherWatchesQuestionsAtAPeriodWithinBounds) {
  const auto refusal = [this](std::uint32_t period_ms, const char* word) {
    Watch watch(*stub_, period_ms, word);
    if (watch.read()) {
      watch.context.TryCancel();
      return std::string();
    }
    return watch.stream->Finish().error_message();
  };
  EXPECT_EQ(refusal(100, "show"), "");
  EXPECT_EQ(refusal(99, "show"), "period_ms: found 99; allowed: 100 .. 3600000");
  EXPECT_EQ(refusal(3'600'000, "show"), "");
  EXPECT_EQ(refusal(3'600'001, "show"), "period_ms: found 3600001; allowed: 100 .. 3600000");
  EXPECT_EQ(refusal(100, "reset"), "no question");
}

TEST_F(Control, WatchersAreBoundedAndOneThatGoesMakesRoom) {
  std::vector<std::unique_ptr<Watch>> watches;
  for (std::size_t number = 0; number < kMostWatchers; ++number) {
    watches.push_back(std::make_unique<Watch>(*stub_, 3'600'000));
    ASSERT_TRUE(watches.back()->read());
  }
  Watch more(*stub_);
  EXPECT_FALSE(more.read());
  EXPECT_EQ(more.stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(execute({"x"}).ok()) << "watchers hold no thread";
  watches.front()->context.TryCancel();
  for (bool is_in = false; !is_in;) {
    Watch next(*stub_);
    is_in = next.read();
    next.context.TryCancel();
  }
}

TEST_F(Control, ItEndsWhileAWatcherReadsNothing) {
  report::Report much = two_ports();
  much[0].rows.assign(10'000, much[0].rows[0]);
  desk_.on_execute = [&much](const auto&) { return much; };
  Watch idle(*stub_, 3'600'000);
  ASSERT_TRUE(idle.read());
  Watch stuck(*stub_); // its answers fill the window of its stream
  endpoint_.reset();
  EXPECT_FALSE(idle.read());
  EXPECT_FALSE(idle.stream->Finish().ok());
  while (stuck.read()) {
  }
  EXPECT_FALSE(stuck.stream->Finish().ok());
}

/// A call whose client asks and does not read the answer.
struct Unread {
  explicit Unread(v1::Switch::Stub& stub) {
    v1::ExecuteRequest request;
    request.add_words("x");
    call = stub.PrepareAsyncExecute(&context, request, &queue);
    call->StartCall();
    call->ReadInitialMetadata(nullptr); // which is all that it reads
    wait();
  }

  ~Unread() {
    v1::ExecuteResponse answer;
    grpc::Status status;
    context.TryCancel();
    call->Finish(&answer, &status, nullptr);
    wait();
    queue.Shutdown();
    wait();
  }

  void wait() {
    void* tag = nullptr;
    bool is_ok = false;
    queue.Next(&tag, &is_ok);
  }

  Unread(const Unread&) = delete;
  Unread& operator=(const Unread&) = delete;

  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::ExecuteResponse>> call;
};

/// 64 MiB, docs/control.md. An answer of 3 MiB takes twice that until it is sent.
TEST_F(Control, AnswersThatNobodyReadsAreBounded) {
  std::atomic<int> answers{0};
  desk_.on_execute = [&answers](const auto&) {
    ++answers;
    return std::string(3U << 20U, 'x');
  };
  grpc::ChannelArguments small_window; // which does not grow with what comes
  small_window.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto lazy = new_stub(small_window);
  std::vector<std::unique_ptr<Unread>> unread;
  for (int number = 0; number < 20; ++number) {
    unread.push_back(std::make_unique<Unread>(*lazy));
  }
  const auto other = new_stub();
  const auto ask = [&other] {
    grpc::ClientContext context;
    v1::ExecuteRequest request;
    v1::ExecuteResponse response;
    request.add_words("x");
    return other->Execute(&context, request, &response);
  };
  const grpc::Status refused = ask();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.error_message(),
            "found this caller's part of 64 MiB full of answers that he "
            "has not read; allowed: read these first, or end the client that does "
            "not read");
  EXPECT_LE(answers, 64 / 6 + 1) << "nothing is done whose answer is refused";
  Watch watch(*other);
  EXPECT_FALSE(watch.read());
  EXPECT_EQ(watch.stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  unread.clear();
  desk_.on_execute = [](const auto&) { return std::string("done"); };
  while (!ask().ok()) {
    std::this_thread::sleep_for(10ms);
  }
}

TEST_F(Control, ConnectionsAreBoundedAndOneThatGoesMakesRoom) {
  constexpr std::size_t most = 64; // docs/control.md
  std::vector<std::unique_ptr<v1::Switch::Stub>> stubs;
  const auto is_served = [](v1::Switch::Stub& stub) {
    grpc::ClientContext context;
    v1::CompleteResponse response;
    return stub.Complete(&context, {}, &response).ok();
  };
  for (std::size_t number = 0; number < most; ++number) {
    stubs.push_back(new_stub());
    ASSERT_TRUE(is_served(*stubs.back())) << number;
  }
  EXPECT_FALSE(is_served(*new_stub()));
  EXPECT_TRUE(is_served(*stubs.front()));
  stubs.pop_back();
  while (!is_served(*new_stub())) {
    std::this_thread::sleep_for(10ms);
  }
}

TEST_F(Control, TooManyRequestsInASecondAreRefused) {
  grpc::StatusCode code = grpc::StatusCode::OK;
  for (int number = 0; number < 100'000 && code == grpc::StatusCode::OK; ++number) {
    code = execute({"x"}).error_code();
  }
  EXPECT_EQ(code, grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(Control, ASecondServiceLeavesALivingOnesSocketAlone) {
  EXPECT_THROW((Endpoint{desk_, at(folder_.socket()), kNobody}), EndpointError);
  EXPECT_TRUE(execute({"x"}).ok());
}

TEST(ClientErrors, SayWhereNobodyAnswers) {
  Client client("unix:/nowhere/control.sock", {});
  try {
    client.execute({"help"});
    FAIL() << "it has an answer";
  } catch (const CallError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no answer from unix:/nowhere/control.sock: "));
    EXPECT_THAT(error.what(), HasSubstr("does a switch run"));
  }
}

TEST(ClientErrors, NameTheFileThatIsNoCertificate) {
  EXPECT_THROW(Client("127.0.0.1:1", {.certificate = "/nowhere.pem"}), CallError);
}

TEST(TlsFiles, AreNamedWhenTheyCannotBeRead) {
  Desk desk;
  config::ControlConfig where;
  where.remote = {"127.0.0.1:0"};
  where.tls = {
      .certificate = "/nowhere.pem", .key = "/nowhere.pem", .client_authority = "/nowhere.pem"};
  try {
    const Endpoint endpoint(desk, where, kNobody);
    FAIL() << "it listens";
  } catch (const EndpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("control.tls.certificate: found /nowhere.pem"));
  }
}

TEST(TlsFiles, ThatAreNoneAreRefused) {
  const Folder folder;
  std::ofstream(folder.socket()) << "no PEM";
  const std::string& file = folder.socket();
  try {
    gate::read_tls_files({.certificate = file, .key = file, .client_authority = file}, "tls");
    FAIL() << "they are certificates";
  } catch (const gate::TlsFileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("tls.client_authority: found " + file +
                                        ", which has no certificate; allowed: "));
  }
}

TEST(ListeningSocket, IsForItsUserAlone) {
  const Folder folder;
  const auto listening = ListeningSocket::at_path(folder.socket());

  struct stat status {};

  ASSERT_EQ(stat(folder.socket().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode, S_IFSOCK | 0600U);
}

TEST(ListeningSocket, TakesItsFileAway) {
  const Folder folder;
  { const auto listening = ListeningSocket::at_path(folder.socket()); }
  EXPECT_FALSE(std::filesystem::exists(folder.socket()));
}

TEST(ListeningSocket, TakesTheFileOfADeadOne) {
  const Folder folder;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  folder.socket().copy(address.sun_path, sizeof address.sun_path - 1);
  const int dead = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(dead, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(dead);
  ASSERT_TRUE(std::filesystem::exists(folder.socket()));
  const auto listening = ListeningSocket::at_path(folder.socket());
  EXPECT_GE(listening.descriptor(), 0);
}

std::string refusal_at(const std::string& path) {
  try {
    const auto listening = ListeningSocket::at_path(path);
    return "";
  } catch (const ListenError& error) {
    return error.what();
  }
}

TEST(ListeningSocket, LeavesALivingOneAndOtherFilesAlone) {
  const Folder folder;
  {
    const auto living = ListeningSocket::at_path(folder.socket());
    EXPECT_THAT(refusal_at(folder.socket()), HasSubstr("another process listens there"));
    EXPECT_TRUE(std::filesystem::exists(folder.socket()));
  }
  std::ofstream(folder.socket()) << "precious";
  EXPECT_THAT(refusal_at(folder.socket()), HasSubstr("a file that is no socket"));
  EXPECT_EQ(std::filesystem::file_size(folder.socket()), 8U);
  EXPECT_THAT(refusal_at("/nowhere/control.sock"), HasSubstr("No such file or directory"));
}

TEST(OpenConnections, CountsADescriptorUntilItIsAnotherConnection) {
  OpenConnections open(2);
  std::array<int, 2> first{};
  std::array<int, 2> second{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, first.data()), 0);
  EXPECT_TRUE(open.add(first[0]));
  EXPECT_TRUE(open.add(first[1]));
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, second.data()), 0);
  EXPECT_FALSE(open.add(second[0]));
  ASSERT_EQ(dup2(second[1], first[1]), first[1]); // closed, and its number used again
  EXPECT_TRUE(open.add(second[0]));
  EXPECT_FALSE(open.add(second[1]));
  for (const int descriptor : {first[0], first[1], second[0], second[1]}) {
    close(descriptor);
  }
}

TEST(OpenConnections, HangsUpOnThoseThatAreStillOpen) {
  OpenConnections open(2);
  std::array<int, 2> kept{};
  std::array<int, 2> gone{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, kept.data()), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, gone.data()), 0);
  ASSERT_TRUE(open.add(kept[0]) && open.add(gone[0]));
  std::array<int, 2> others{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, others.data()), 0);
  ASSERT_EQ(dup2(others[0], gone[0]), gone[0]); // its number is another's now
  open.hang_up();
  char byte = 0;
  EXPECT_EQ(recv(kept[1], &byte, 1, MSG_DONTWAIT), 0);
  EXPECT_EQ(recv(others[1], &byte, 1, MSG_DONTWAIT), -1);
  for (const int descriptor : {kept[0], kept[1], gone[0], gone[1], others[0], others[1]}) {
    close(descriptor);
  }
}

/// Such entries would stay for ever: all of them have the inode 0.
TEST(OpenConnections, RefusesWhatIsNoSocket) {
  OpenConnections open(2);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  EXPECT_FALSE(open.add(ends[0]));
  EXPECT_FALSE(open.add(-1));
  close(ends[0]);
  close(ends[1]);
}

/// A connection to 127.0.0.1:`port` from an address.
int connection_from(const char* address, std::uint16_t port) {
  const auto at = [](const char* ip, std::uint16_t number) {
    sockaddr_in found{};
    found.sin_family = AF_INET;
    found.sin_port = htons(number);
    EXPECT_EQ(inet_pton(AF_INET, ip, &found.sin_addr), 1);
    return found;
  };
  const int caller = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in own = at(address, 0);
  const sockaddr_in other = at("127.0.0.1", port);
  EXPECT_EQ(bind(caller, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
  EXPECT_EQ(connect(caller, reinterpret_cast<const sockaddr*>(&other), sizeof other), 0);
  return caller;
}

std::uint16_t port_of(const ListeningSocket& listening) {
  sockaddr_in own{};
  socklen_t length = sizeof own;
  EXPECT_EQ(getsockname(listening.descriptor(), reinterpret_cast<sockaddr*>(&own), &length), 0);
  return ntohs(own.sin_port);
}

TEST(OpenConnections, AnAddressHasAQuarterOfThem) {
  const auto listening = ListeningSocket::at_address("127.0.0.1:0");
  OpenConnections open(8);
  std::vector<int> used;
  const auto comes = [&](const char* address) {
    used.push_back(connection_from(address, port_of(listening)));
    used.push_back(listening.accept());
    return open.add(used.back());
  };
  EXPECT_TRUE(comes("127.0.0.2"));
  EXPECT_TRUE(comes("127.0.0.2"));
  EXPECT_FALSE(comes("127.0.0.2"));
  EXPECT_TRUE(comes("127.0.0.3"));
  for (const int descriptor : used) {
    close(descriptor);
  }
}

/// How many requests of a name pass at once.
int passed(RequestShares& shares, const std::string& name, RequestShares::Clock::time_point now) {
  int count = 0;
  while (shares.lets_pass(name, now)) {
    ++count;
  }
  return count;
}

constexpr RequestShares::Clock::time_point kStart(1h);

TEST(RequestShares, OneAloneHasAllOfASecond) {
  RequestShares shares(30);
  EXPECT_EQ(passed(shares, "a", kStart), 30);
  EXPECT_EQ(passed(shares, "a", kStart), 0);
  EXPECT_EQ(passed(shares, "a", kStart + 700ms), 21);
  EXPECT_EQ(passed(shares, "a", kStart + 1h), 30);
}

TEST(RequestShares, WhoAsksHasAnEqualPart) {
  RequestShares shares(30);
  EXPECT_EQ(passed(shares, "a", kStart), 30);
  EXPECT_EQ(passed(shares, "b", kStart), 15);
  EXPECT_EQ(passed(shares, "c", kStart), 10);
  EXPECT_EQ(passed(shares, "a", kStart + 1s), 10);
  EXPECT_EQ(passed(shares, "b", kStart + 1s), 10);
  EXPECT_EQ(passed(shares, "a", kStart + 12s), 30) << "the others have been silent for ten seconds";
}

TEST(RequestShares, OneOfManyHasEnoughToHoldARing) {
  RequestShares shares(30);
  for (int name = 0; name < 100; ++name) {
    EXPECT_GE(passed(shares, std::to_string(name), kStart), 2) << name;
  }
}

TEST(RequestShares, EachHasAllWhereTheSmallestPartIsAll) {
  RequestShares shares(30, 30);
  for (int name = 0; name < 10; ++name) {
    EXPECT_EQ(passed(shares, std::to_string(name), kStart), 30) << name;
  }
}

TEST(ReceivedReport, WantsACellForEachColumn) {
  google::protobuf::RepeatedPtrField<v1::Table> tables;
  write(two_ports(), tables);
  EXPECT_EQ(to_json(ReceivedReport(tables).report()), to_json(two_ports()));
  tables[0].mutable_rows(1)->add_cells()->set_number(1);
  EXPECT_THROW(ReceivedReport{tables}, WrongMessage);
}

} // namespace
} // namespace weir::rpc::rpc_test
