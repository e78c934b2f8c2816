// SPDX-License-Identifier: BSD-3-Clause

/// Callers that are none of the job's ranks: they harm nobody, are closed in bounded time, and are
/// counted. And listeners that are not rank 0.

#include "host/base/control_note.hpp"
#include "host/rendezvous/admission.hpp"
#include "host/rendezvous/joining.hpp"
#include "host/rendezvous/rendezvous.hpp"
#include "host_job.hpp"
#include "rank_zero.hpp"
#include "support/comes_true.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <atomic>
#include <dirent.h>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace weir::host::strangers_test {
namespace {

const Credentials kOurs{"job-a", "0123456789abcdef"};

Ending come(const RendezvousPlan& plan) {
  return ending_of([&] { Rendezvous(plan).gather({}); });
}

constexpr std::size_t kChallengeBytes = 9 + 16; // without a secret

std::size_t bytes_waiting_at(const Socket& socket) {
  int bytes = 0;
  ioctl(socket.get(), FIONREAD, &bytes);
  return static_cast<std::size_t>(bytes);
}

/// An acceptor that a test drives itself.
struct Acceptor {
  explicit Acceptor(const Credentials& credentials = {},
                    milliseconds patience = Admission::kPatience)
      : admission(listen_at(*Endpoint::parse(address)), credentials, patience) {}

  /// Who is admitted within that time.
  std::optional<PendingPeer> next(milliseconds time = milliseconds(200)) {
    return admission.next(Clock::now() + time);
  }

  /// Hears callers, of whom none is admitted.
  template <typename Condition>
  void hear_until(Condition&& condition) {
    EXPECT_TRUE(test::comes_true([&] {
      EXPECT_FALSE(next(milliseconds(10)));
      return condition();
    }));
  }

  void reject(std::uint64_t callers) {
    hear_until([&] { return admission.rejections().total() >= callers; });
    EXPECT_EQ(admission.rejections().total(), callers);
  }

  void challenge(const Socket& caller) {
    hear_until([&] { return bytes_waiting_at(caller) >= kChallengeBytes; });
  }

  const std::string address = free_address();
  Admission admission;
};

TEST(Strangers, AreToleratedAndCounted) {
  const std::string address = free_address();
  RankZero rank_0(2, address, milliseconds(5000));
  const Socket stranger = connected_to(address);
  say(stranger, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(is_closed(stranger));
  connected_to(address); // and closes, as a port scanner does
  EXPECT_FALSE(come({1, 2, address, milliseconds(5000)}).code); // heard after them
  EXPECT_FALSE(rank_0.ending().code);
  EXPECT_EQ(rank_0.callers_turned_away(), 2);
}

/// A rank that knows several addresses tries them all, and needs one.
TEST(Strangers, AreNotRanksThatHaveFoundAnotherAddress) {
  const std::string address = free_address();
  RankZero rank_0(2, address, milliseconds(5000));
  connected_to(address); // counted
  const Endpoint endpoint = *Endpoint::parse(address);
  std::unique_ptr<FramedStream> rank_1; // a rank that has gone is missing again
  const auto join = [&] {
    rank_1 = join_rank_0({{1, 2}, {}, {endpoint, endpoint, endpoint}, milliseconds(4000)});
    rank_1->send(code(ControlKind::blob), {});
  };
  EXPECT_FALSE(ending_of(join).code);
  EXPECT_FALSE(rank_0.ending().code);
  EXPECT_EQ(rank_0.callers_turned_away(), 1);
}

TEST(Strangers, TakeNobodysPlaceByAJoinAlone) {
  const std::string address = free_address();
  RankZero rank_0(3, address, milliseconds(5000));
  std::vector<Socket> strangers;
  const auto come_as_rank_1 = [&](std::uint8_t world) {
    strangers.push_back(connected_to(address));
    say(strangers.back(), raw_join(1, world));
  };
  come_as_rank_1(3); // before rank 1
  come_as_rank_1(9);
  std::atomic<bool> may_go_on = false;
  std::thread rank_1([&] {
    Rendezvous rendezvous({1, 3, address, milliseconds(5000)});
    may_go_on = true;
    EXPECT_FALSE(ending_of([&] { rendezvous.gather(Blob(4, 1)); }).code);
  });
  EXPECT_TRUE(test::comes_true([&] { return may_go_on.load(); }));
  come_as_rank_1(3); // after it, while rank 2 is awaited
  EXPECT_FALSE(ending_of([&] {
                 Rendezvous({2, 3, address, milliseconds(5000)}).gather(Blob(4, 2));
               }).code);
  rank_1.join();
  EXPECT_FALSE(rank_0.ending().code);
  EXPECT_EQ(rank_0.blobs(), (std::vector<Blob>{{}, Blob(4, 1), Blob(4, 2)}));
}

TEST(Strangers, LetNobodyWaitWhenTheyAreSilent) {
  const std::string address = free_address();
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    std::vector<Socket> strangers;
    for (int count = 0; rank == 1 && count < 40; ++count) {
      strangers.push_back(connected_to(address));
      if (count % 2 == 0) {
        say(strangers.back(), "WCT"); // may yet become a join
      }
    }
    Rendezvous rendezvous({rank, 2, address, milliseconds(5000)});
    rendezvous.gather({});
  });
  expect_none(endings);
}

TEST(Strangers, AreClosedWhenTheyAnnounceMoreThanAJoin) {
  Acceptor acceptor;
  const Socket longest = connected_to(acceptor.address);
  const Socket too_long = connected_to(acceptor.address);
  say(longest, std::string_view("WCTL\x01\0\0\0\x76", 9)); // 22 + 64 + 32
  say(too_long, std::string_view("WCTL\x01\0\0\0\x77", 9));
  acceptor.reject(1);
  EXPECT_TRUE(is_closed(too_long));
  char byte = 0;
  EXPECT_EQ(recv(longest.get(), &byte, 1, MSG_DONTWAIT), -1) << "it may still become a join";
}

TEST(Strangers, AreClosedWhenTheyAreTooSlow) {
  Acceptor acceptor({}, milliseconds(300));
  const Socket silent = connected_to(acceptor.address);
  const Socket slow = connected_to(acceptor.address);
  const Socket unanswering = connected_to(acceptor.address);
  say(unanswering, raw_join(1, 2));
  const std::string join = raw_join(1, 2);
  for (std::size_t sent = 0; sent < 3; ++sent) { // a byte now and then renews no patience
    say(slow, join.substr(sent, 1));
    EXPECT_FALSE(acceptor.next(milliseconds(80)));
  }
  EXPECT_FALSE(acceptor.next(milliseconds(150)));
  for (const Socket* stranger : {&silent, &slow}) {
    EXPECT_TRUE(is_closed(*stranger));
  }
  EXPECT_EQ(heard(unanswering, 26).size(), 25) << "a challenge, and then the end";
  EXPECT_EQ(acceptor.admission.rejections().total(), 3);
}

TEST(Strangers, AreClosedWhenTheySpeakOutOfTurn) {
  const std::string nonce(16, 'n');
  const std::string join = raw_join(1, 2);

  struct Row {
    const char* text;
    std::string said;
  };

  const std::vector<Row> rows{
      {"an answer before a join", raw_frame(3, nonce)},
      {"a blob before a join", raw_frame(6, "blob")},
      {"a join under another kind", raw_frame(6, join.substr(9))},
      {"a leave before a join", raw_frame(10, "")},
      {"a challenge, as if it were rank 0", raw_frame(2, nonce)},
      {"a refusal, as if it were rank 0", raw_frame(5, "\1")},
      {"a welcome, as if it were rank 0", raw_frame(4, "")},
      {"a kind that there is not", raw_frame(0, "")},
      {"the last kind of all", raw_frame(255, nonce)},
      {"a join that is cut short", raw_frame(1, join.substr(9, 21))},
      {"two joins", join + join},
      {"an answer with another nonce", join + raw_frame(3, nonce)},
      {"an answer with half a nonce", join + raw_frame(3, nonce.substr(8))},
      {"an answer with nothing", join + raw_frame(3, "")},
      {"an answer with more than a nonce", join + raw_frame(3, nonce + "n")},
      {"no magic number", "XCTL" + join.substr(4)},
  };
  for (const Row& row : rows) {
    Acceptor acceptor;
    const Socket stranger = connected_to(acceptor.address);
    say(stranger, row.said);
    SCOPED_TRACE(row.text);
    acceptor.reject(1);
  }
}

/// Both ends of every connection are ours.
void allow_many_descriptors() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

/// Answers the challenge that has come, without a secret.
void answer_challenge(const Socket& caller) {
  const std::string challenge = heard(caller, kChallengeBytes);
  ASSERT_EQ(challenge.size(), kChallengeBytes);
  ASSERT_EQ(challenge[4], 2);
  say(caller, raw_frame(3, challenge.substr(9)));
}

TEST(Strangers, GiveWayWhenTheyAreTooManyTheSilentFirst) {
  allow_many_descriptors();
  Acceptor acceptor;
  const Socket challenged = connected_to(acceptor.address); // the oldest
  say(challenged, raw_join(3, 5));
  acceptor.challenge(challenged);
  std::vector<Socket> silent;
  for (std::size_t count = 0; count < Admission::kMaxCallers; ++count) {
    silent.push_back(connected_to(acceptor.address));
  }
  acceptor.reject(1);
  const auto answer = [](const Socket& stranger) {
    std::uint8_t byte = 0;
    return recv(stranger.get(), &byte, 1, MSG_DONTWAIT);
  };
  EXPECT_EQ(answer(silent[0]), 0) << "still open";
  EXPECT_EQ(answer(silent[1]), -1) << "closed";
  answer_challenge(challenged);
  const std::optional<PendingPeer> peer = acceptor.next(milliseconds(2000));
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->claim.rank, 3);
  EXPECT_EQ(peer->claim.world, 5);
}

/// Connects from that address of this host.
Socket connected_from(const char* source, const std::string& address) {
  const Endpoint to = *Endpoint::parse(address);
  const auto at = [](const std::string& host, const std::string& port) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port)));
    inet_pton(AF_INET, host.c_str(), &place.sin_addr);
    return place;
  };
  Socket socket([] { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); });
  const sockaddr_in from = at(source, "0");
  const sockaddr_in listener = at(to.host, to.port);
  EXPECT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)), 0);
  EXPECT_EQ(connect(socket.get(), reinterpret_cast<const sockaddr*>(&listener), sizeof(listener)),
            0);
  return socket;
}

/// The flood comes from one address, and half of it asks to join. A silent rank that came first
/// stays.
TEST(Strangers, FromOneAddressTakeNobodysPlaceFromAnother) {
  allow_many_descriptors();
  Acceptor acceptor;
  const Socket rank = connected_from("127.0.0.2", acceptor.address);
  std::vector<Socket> flood;
  for (std::size_t count = 0; count < Admission::kMaxCallers + 100; ++count) {
    flood.push_back(connected_from("127.0.0.3", acceptor.address));
    if (count % 2 == 0) {
      say(flood.back(), raw_join(4, 5));
    }
    if (count % 100 == 0) {
      EXPECT_FALSE(acceptor.next(milliseconds(20)));
    }
  }
  EXPECT_TRUE(test::comes_true([&] {
    EXPECT_FALSE(acceptor.next(milliseconds(20)));
    return acceptor.admission.rejections().total() >= 101;
  }));
  EXPECT_FALSE(acceptor.next(milliseconds(100)));
  EXPECT_EQ(acceptor.admission.rejections().total(), 101) << "all of the flood";
  say(rank, raw_join(3, 5));
  acceptor.challenge(rank);
  answer_challenge(rank);
  const std::optional<PendingPeer> peer = acceptor.next(milliseconds(2000));
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->claim.rank, 3);
}

TEST(Callers, OfIpv6HaveANetworkOf64BitsOnWhateverLink) {
  EXPECT_EQ(network_of("2001:db8::1"), network_of("2001:db8::ffff:0:0:2"));
  EXPECT_NE(network_of("2001:db8::1"), network_of("2001:db8:0:1::1"));
  EXPECT_EQ(network_of("fe80::1%eth0"), network_of("fe80::2%eth0"));
  EXPECT_NE(network_of("10.0.0.1"), network_of("10.0.0.2"));
  EXPECT_EQ(network_of("10.0.0.1"), "10.0.0.1");
}

/// One host of a network floods, another one of it has one caller, which is older and silent.
TEST(Callers, OfTheFullestAddressOfTheFullestNetworkGiveWay) {
  const std::string network = network_of("2001:db8::1");
  const std::string other = network_of("2001:db8:1::1");
  std::vector<WaitingCaller> callers{{"2001:db8::1", network},
                                     {"2001:db8:1::1", other},
                                     {"2001:db8:1::1", other},
                                     {"2001:db8::2", network, true},
                                     {"2001:db8::2", network}};
  EXPECT_EQ(who_gives_way(callers), 4U) << "the silent one";
  callers[4].has_asked = true;
  EXPECT_EQ(who_gives_way(callers), 3U) << "the oldest";
}

/// This process may open only `more` descriptors.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t more) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = first_free() + more;
    setrlimit(RLIMIT_NOFILE, &few);
  }

  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  /// With no gap below it, because the new descriptor is the lowest that is free.
  static rlim_t first_free() {
    const int descriptor = dup(0);
    close(descriptor);
    return static_cast<rlim_t>(descriptor);
  }

  rlimit before_{};
};

TEST(Strangers, DoNotUseUpTheProcesssDescriptors) {
  Acceptor acceptor;
  std::vector<Socket> silent;
  for (int count = 0; count < 10; ++count) {
    silent.push_back(connected_to(acceptor.address));
  }
  const Socket rank = connected_to(acceptor.address);
  say(rank, raw_join(1, 2));
  const FewDescriptors few(2);
  acceptor.challenge(rank);
  answer_challenge(rank);
  EXPECT_TRUE(acceptor.next(milliseconds(2000)));
}

TEST(Strangers, AreNotToBlameWhenTheProcessHasNoDescriptor) {
  Acceptor acceptor;
  const Socket caller = connected_to(acceptor.address);
  const FewDescriptors none(0);
  EXPECT_THROW(acceptor.next(), std::runtime_error);
}

TEST(Strangers, AdmitNobodyByTheNonceInAFrameOfAnotherKind) {
  Acceptor acceptor;
  const Socket caller = connected_to(acceptor.address);
  say(caller, raw_join(1, 2));
  acceptor.challenge(caller);
  const std::string nonce = heard(caller, kChallengeBytes).substr(9);
  say(caller, raw_frame(4, nonce));
  acceptor.reject(1);
}

// -- with a job name and a secret

TEST(Secret, RanksThatHaveItMeet) {
  const std::string address = free_address();
  const auto endings = run_ranks(3, [&](std::uint16_t rank) {
    Rendezvous rendezvous({rank, 3, address, milliseconds(5000), kOurs});
    for (std::size_t round = 1; round <= 3; ++round) {
      const auto all = rendezvous.gather(Blob(rank * 50000 * round, 7));
      EXPECT_EQ(all[2], Blob(2 * 50000 * round, 7));
    }
  });
  expect_none(endings);
}

TEST(Secret, WhoHasAnotherNameOrSecretIsToldWhyAndCounted) {
  const std::string address = free_address();
  RankZero rank_0(2, address, milliseconds(1500), kOurs);

  struct Row {
    Credentials theirs;
    const char* text;
  };

  const std::vector<Row> rows{
      {{"job-a", "another secret that is long"}, "rank 0 has another secret"},
      {{"job-a", "0123456789abcdeF"}, "rank 0 has another secret"},
      {{"job-a", ""}, "rank 0 has a secret, this rank has none"},
      {{"job-b", kOurs.secret}, "rank 0 is of another job"},
  };
  for (const Row& row : rows) {
    const auto start = Clock::now();
    const Ending ending = come({1, 2, address, milliseconds(5000), row.theirs});
    EXPECT_EQ(ending.code, ErrorCode::mismatch) << ending.text;
    EXPECT_EQ(ending.rank, 1);
    EXPECT_NE(ending.text.find(row.text), std::string::npos) << ending.text;
    EXPECT_LT(Clock::now() - start, milliseconds(1000)) << "waited before it said so";
  }
  const Ending ending = rank_0.ending();
  EXPECT_EQ(ending.code, ErrorCode::rendezvous_timeout) << ending.text;
  EXPECT_EQ(ending.rank, 1);
  EXPECT_NE(ending.text.find("turned away were callers: 1 of another job, 2 with another secret, "
                             "1 without the secret"),
            std::string::npos)
      << ending.text;
}

TEST(Secret, RankZeroWithoutOneTurnsItsOwnersAway) {
  const std::string address = free_address();
  RankZero rank_0(2, address, milliseconds(500), {"job-a", ""});
  const Ending ending = come({1, 2, address, milliseconds(5000), kOurs});
  EXPECT_NE(ending.text.find("rank 0 has no secret, this rank has one"), std::string::npos)
      << ending.text;
  EXPECT_EQ(rank_0.ending().code, ErrorCode::rendezvous_timeout);
}

/// What a rank with the secret says until it is admitted, byte by byte.
struct Dialogue {
  std::string join;
  std::string answer;
};

std::string text_of(ByteView bytes) {
  return {bytes.begin(), bytes.end()};
}

ByteView bytes_in(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// Comes as rank 1 of 2. The acceptor must have been called since for the answer to arrive.
Dialogue come_by_hand(Acceptor& acceptor, const Socket& caller) {
  const std::string body = text_of(make_join(kOurs, {1, 2}, {1, 2, 3}));
  Dialogue said{raw_frame(1, body), ""};
  say(caller, said.join);
  EXPECT_FALSE(acceptor.next(milliseconds(50)));
  const std::string challenge = heard(caller, 9 + 16 + 32).substr(9);
  const std::optional<Nonce> nonce = read_challenge(bytes_in(challenge), bytes_in(body), kOurs);
  EXPECT_TRUE(nonce);
  const std::string unsealed = raw_frame(3, challenge.substr(0, 16));
  FrameSeal seal(session_keys(kOurs, bytes_in(body), *nonce).to_rank_0);
  said.answer = unsealed + text_of(seal.next(bytes_in(unsealed).first(9), *nonce));
  return said;
}

TEST(Secret, AHandshakeWorksOnceOnly) {
  Acceptor acceptor(kOurs);
  const Socket rank = connected_to(acceptor.address);
  const Dialogue said = come_by_hand(acceptor, rank);
  say(rank, said.answer);
  EXPECT_TRUE(acceptor.next());
  const Socket replayer = connected_to(acceptor.address);
  say(replayer, said.join);
  acceptor.challenge(replayer);
  say(replayer, said.answer);
  acceptor.reject(1);
}

TEST(Secret, AnAnswerWithoutItsCodeAdmitsNobody) {
  Acceptor acceptor(kOurs);
  const Socket rank = connected_to(acceptor.address);
  const Dialogue said = come_by_hand(acceptor, rank);
  std::string changed = said.answer;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  say(rank, changed);
  acceptor.reject(1);
}

// -- listeners that are not rank 0

/// Accepts every caller, and says the same to each when its join is there.
class Impostor {
 public:
  explicit Impostor(std::string says)
      : says_(std::move(says)), listener_(listen_at(*Endpoint::parse(address_))),
        thread_([this] { listen(); }) {}

  ~Impostor() {
    is_over_ = true;
    thread_.join();
  }

  const std::string& address() const { return address_; }

 private:
  void listen() {
    std::vector<Socket> callers;
    while (!is_over_) {
      if (Socket caller = accept_waiting(listener_)) {
        heard(caller, 9 + 22);
        say(caller, says_);
        callers.push_back(std::move(caller));
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
  }

  const std::string address_ = free_address();
  const std::string says_;
  const Socket listener_;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

TEST(Impostor, IsNotTakenForRankZero) {
  struct Row {
    const char* text;
    std::string says;
    ErrorCode code;
    const char* due;
  };

  const std::vector<Row> rows{
      {"a challenge without a proof", raw_frame(2, std::string(16, 'n')),
       ErrorCode::rendezvous_timeout, "who listens there does not know the job's secret"},
      {"a challenge with a wrong proof", raw_frame(2, std::string(48, 'n')),
       ErrorCode::rendezvous_timeout, "who listens there does not know the job's secret"},
      {"a welcome at once", raw_frame(4, ""), ErrorCode::rendezvous_timeout,
       "it sent a control frame of kind 4; due is a challenge"},
      {"an error at once", raw_frame(9, std::string("\5\0\0\0gone", 8)),
       ErrorCode::rendezvous_timeout, "it sent a control frame of kind 9; due is a challenge"},
      {"another protocol", "HTTP/1.1 400 Bad Request\r\n", ErrorCode::rendezvous_timeout,
       "it sent what is no control frame"},
      {"nothing", "", ErrorCode::rendezvous_timeout, "it accepted the connection and said nothing"},
      {"a refusal", raw_frame(5, "\1"), ErrorCode::mismatch, "rank 0 is of another job"},
      {"a refusal for no reason", raw_frame(5, "\x63"), ErrorCode::mismatch, "it does not say why"},
  };
  for (const Row& row : rows) {
    const Impostor impostor(row.says);
    const Ending ending = come({1, 2, impostor.address(), milliseconds(300), kOurs});
    EXPECT_EQ(ending.code, row.code) << row.text << ": " << ending.text;
    EXPECT_NE(ending.text.find(row.due), std::string::npos) << row.text << ": " << ending.text;
  }
}

/// As where one address means another machine to each rank, and other jobs have the same port.
TEST(Impostor, DoesNotKeepARankFromAnotherAddress) {
  const Impostor refusing(raw_frame(5, "\2"));
  const Impostor ignorant(raw_frame(2, std::string(16, 'n')));
  const Impostor silent("");
  const std::string address = free_address();
  RankZero rank_0(2, address, milliseconds(5000), kOurs);
  std::vector<Endpoint> endpoints;
  for (const std::string& each :
       {refusing.address(), ignorant.address(), silent.address(), free_address(), address}) {
    endpoints.push_back(*Endpoint::parse(each));
  }
  std::unique_ptr<FramedStream> stream; // until rank 0 has what it waits for
  const Ending ending = ending_of([&] {
    stream = join_rank_0({{1, 2}, kOurs, endpoints, milliseconds(4000)});
    stream->send(code(ControlKind::blob), {});
  });
  EXPECT_FALSE(ending.code) << ending.text;
  EXPECT_FALSE(rank_0.ending().code);
}

/// As when it was closed in favour of another, or was stopped during the handshake.
TEST(Join, ComesAgainWhenItsConnectionClosed) {
  const std::string address = free_address();
  Socket listener = listen_at(*Endpoint::parse(address));
  std::thread rank_1([&] {
    EXPECT_FALSE(ending_of([&] { Rendezvous({1, 2, address, milliseconds(5000)}); }).code);
  });
  EXPECT_TRUE(test::comes_true([&] { return bool(accept_waiting(listener)); }));
  Admission admission(std::move(listener), {});
  const std::optional<PendingPeer> peer = admission.next(Clock::now() + milliseconds(3000));
  EXPECT_TRUE(peer);
  if (peer) {
    peer->stream->send(code(ControlKind::welcome), {});
  }
  rank_1.join();
}

} // namespace
} // namespace weir::host::strangers_test
