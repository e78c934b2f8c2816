// SPDX-License-Identifier: BSD-3-Clause

/// The host library: the message window by tables, the rendezvous over loopback, and whole jobs
/// whose ranks are threads around a switch in memory. Sums are held against straight loops.

#include "host/admission.hpp"
#include "host/message_window.hpp"
#include "host/rendezvous.hpp"
#include "host_fabric.hpp"
#include "support/comes_true.hpp"
#include "weir/communicator.hpp"
#include "weir/weir.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace weir::host {
namespace {

using std::chrono::milliseconds;
using test::Bytes;
using test::HostFabric;

constexpr std::uint32_t kSession = 7;

/// A loopback port that nobody listens at.
std::string free_address() {
  const Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length);
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

/// How a rank ended: with an error, or without.
struct Ending {
  std::optional<ErrorCode> code;
  std::optional<std::uint16_t> rank;
  std::string text;
};

Ending ending_of(const std::function<void()>& body) {
  try {
    body();
    return {};
  } catch (const Error& error) {
    return {error.code(), error.rank(), error.what()};
  }
}

/// Runs body(rank) for every rank in a thread of its own.
std::vector<Ending> run_ranks(std::uint16_t world, const std::function<void(std::uint16_t)>& body) {
  std::vector<Ending> endings(world);
  std::vector<std::thread> threads;
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] { endings[rank] = ending_of([&] { body(rank); }); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return endings;
}

void expect_all(const std::vector<Ending>& endings, ErrorCode code) {
  for (std::size_t rank = 0; rank < endings.size(); ++rank) {
    ASSERT_TRUE(endings[rank].code) << "rank " << rank << " ended well";
    EXPECT_EQ(*endings[rank].code, code) << "rank " << rank << ": " << endings[rank].text;
  }
}

void expect_none(const std::vector<Ending>& endings) {
  for (std::size_t rank = 0; rank < endings.size(); ++rank) {
    EXPECT_FALSE(endings[rank].code) << "rank " << rank << ": " << endings[rank].text;
  }
}

// ---------------------------------------------------------------------------------------- window

constexpr WindowConfig kWindow{
    .ring = 9, .rank = 2, .world = 3, .window = 2, .message_bytes = 40 + 16, .epoch = 5};

/// The result of a message as the switch sends it: the predecessor's header with RESULT.
Bytes result_for(const MessageWindow::Outgoing& message, std::uint32_t session = kSession) {
  Bytes bytes(message.header.begin(), message.header.end());
  bytes.resize(kInaHeaderBytes + message.piece.bytes, 0xab);
  auto& header = wire::view_as<wire::InaHeader>(bytes.data());
  header.flags = kInaFlagResult;
  header.rank.set(kWindow.predecessor());
  header.session.set(session);
  return bytes;
}

void greet(MessageWindow& window) {
  const auto hello = window.next();
  ASSERT_TRUE(hello);
  window.accept(0, result_for(*hello));
  window.complete();
  ASSERT_EQ(window.state(), MessageWindow::State::idle);
}

TEST(MessageWindow, SaysHelloFirstAndNothingElse) {
  MessageWindow window(kWindow);
  const auto hello = window.next();
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->number, 0U);
  EXPECT_EQ(hello->piece.bytes, 0U);
  const Bytes expected{0x57, 0x45, 0x49, 0x52, 1, 0, 0, 0, 0, 0, 0, 9, 0, 2, 0, 3, 0, 0, 0, 0,
                       0,    0,    0,    0,    0, 0, 0, 5, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(Bytes(hello->header.begin(), hello->header.end()), expected);
  EXPECT_FALSE(window.next());
}

TEST(MessageWindow, TakesSessionFromHelloAndPutsItIntoEveryMessage) {
  MessageWindow window(kWindow);
  greet(window);
  EXPECT_EQ(window.session(), kSession);
  window.begin(20, DataType::i32, Operation::max);
  const auto first = window.next();
  ASSERT_TRUE(first);
  const Bytes expected{0x57, 0x45, 0x49, 0x52, 1, 2, 1, 0, 0, 0, 0, 9, 0, 2, 0, 3, 0, 0, 0, 1,
                       0,    0,    0,    16,   0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(Bytes(first->header.begin(), first->header.end()), expected);
}

TEST(MessageWindow, SendsMessageMOnceTheResultOfMMinusNIsIn) {
  MessageWindow window(kWindow);
  greet(window);
  window.begin(16 * 5 + 4, DataType::f32, Operation::sum);
  std::vector<MessageWindow::Outgoing> sent;
  std::size_t received = 0;
  const auto drain = [&] {
    while (const auto message = window.next()) {
      sent.push_back(*message);
    }
  };
  drain();
  ASSERT_EQ(sent.size(), 2U); // N
  while (received < sent.size()) {
    const auto piece =
        window.accept(static_cast<std::uint32_t>(received + 1), result_for(sent[received]));
    EXPECT_EQ(piece.offset, 16 * received);
    EXPECT_EQ(piece.bytes, received == 5 ? 4U : 16U);
    ++received;
    window.complete();
    drain();
    EXPECT_EQ(sent.size(), std::min<std::size_t>(received + 2, 6));
  }
  EXPECT_EQ(received, 6U);
  EXPECT_EQ(window.state(), MessageWindow::State::idle);
}

TEST(MessageWindow, HoldsBackWhenTheHeaderOf2NMessagesAgoIsUnacknowledged) {
  MessageWindow window(kWindow);
  greet(window);
  window.begin(16 * 8, DataType::f32, Operation::sum);
  std::vector<MessageWindow::Outgoing> sent;
  for (std::uint32_t received = 0; received < 8; ++received) {
    while (const auto message = window.next()) {
      sent.push_back(*message);
    }
    if (received == sent.size()) {
      break;
    }
    window.accept(received + 1, result_for(sent[received]));
  }
  EXPECT_EQ(sent.size(), 4U) << "2N, as nothing was acknowledged";
  window.complete();
  EXPECT_TRUE(window.next());
}

TEST(MessageWindow, NumbersRunOnFromOneTensorToTheNext) {
  MessageWindow window(kWindow);
  greet(window);
  for (std::uint32_t id = 1; id <= 3; ++id) {
    window.begin(8, DataType::u8, Operation::sum);
    const auto message = window.next();
    ASSERT_TRUE(message);
    EXPECT_EQ(message->number, id);
    EXPECT_FALSE(window.next());
    window.accept(id, result_for(*message));
    EXPECT_EQ(window.state(), MessageWindow::State::reducing) << "not acknowledged";
    window.complete();
    EXPECT_EQ(window.state(), MessageWindow::State::idle);
  }
}

TEST(MessageWindow, AnEmptyTensorIsOverAtOnce) {
  MessageWindow window(kWindow);
  greet(window);
  window.begin(0, DataType::f32, Operation::sum);
  EXPECT_EQ(window.state(), MessageWindow::State::idle);
  EXPECT_FALSE(window.next());
}

TEST(MessageWindow, RefusesWhatIsNotTheResultThatIsDue) {
  struct Case {
    const char* description;
    std::function<void(wire::InaHeader&)> hurt;
    ErrorCode code;
  };

  const std::vector<Case> cases{
      {"no RESULT", [](auto& h) { h.flags = 0; }, ErrorCode::not_aggregated},
      {"magic", [](auto& h) { h.magic.set(1); }, ErrorCode::transport_failure},
      {"version", [](auto& h) { h.version = 2; }, ErrorCode::mismatch},
      {"op", [](auto& h) { h.operation = 1; }, ErrorCode::mismatch},
      {"dtype", [](auto& h) { h.data_type = 1; }, ErrorCode::mismatch},
      {"reserved flag", [](auto& h) { h.flags = 3; }, ErrorCode::mismatch},
      {"ring", [](auto& h) { h.ring_id.set(8); }, ErrorCode::mismatch},
      {"rank: our own", [](auto& h) { h.rank.set(2); }, ErrorCode::mismatch},
      {"world", [](auto& h) { h.world.set(4); }, ErrorCode::mismatch},
      {"msg_id", [](auto& h) { h.message_id.set(2); }, ErrorCode::mismatch},
      {"msg_len", [](auto& h) { h.message_length.set(8); }, ErrorCode::mismatch},
      {"epoch", [](auto& h) { h.epoch.set(4); }, ErrorCode::mismatch},
      {"session", [](auto& h) { h.session.set(8); }, ErrorCode::mismatch},
      {"collective", [](auto& h) { h.collective = 1; }, ErrorCode::mismatch},
  };
  for (const Case& entry : cases) {
    MessageWindow window(kWindow);
    greet(window);
    window.begin(16, DataType::f32, Operation::sum);
    Bytes bytes = result_for(*window.next());
    entry.hurt(wire::view_as<wire::InaHeader>(bytes.data()));
    const Ending ending = ending_of([&] { window.accept(1, bytes); });
    ASSERT_TRUE(ending.code) << entry.description;
    EXPECT_EQ(*ending.code, entry.code) << entry.description << ": " << ending.text;
    EXPECT_EQ(ending.rank, 1) << entry.description;
  }
}

TEST(MessageWindow, RefusesWrongImmediateLengthAndUnaskedResult) {
  MessageWindow window(kWindow);
  greet(window);
  window.begin(32, DataType::f32, Operation::sum);
  const auto message = window.next();
  Bytes bytes = result_for(*message);
  EXPECT_EQ(ending_of([&] { window.accept(2, bytes); }).code, ErrorCode::transport_failure);
  bytes.pop_back();
  EXPECT_EQ(ending_of([&] { window.accept(1, bytes); }).code, ErrorCode::transport_failure);
  EXPECT_EQ(ending_of([&] { window.accept(1, Bytes(39)); }).code, ErrorCode::transport_failure);
  window.accept(1, result_for(*message));
  Bytes next = result_for(*message);
  wire::view_as<wire::InaHeader>(next.data()).message_id.set(2);
  EXPECT_EQ(ending_of([&] { window.accept(2, next); }).code, ErrorCode::transport_failure);
}

TEST(MessageWindow, AHelloWithoutSessionIsRefused) {
  MessageWindow window(kWindow);
  const auto hello = window.next();
  EXPECT_EQ(ending_of([&] { window.accept(0, result_for(*hello, 0)); }).code, ErrorCode::mismatch);
}

TEST(MessageWindow, APlainHelloMayComeBeforeOurOwnLeft) {
  MessageWindow window(kWindow);
  Bytes hello(kInaHeaderBytes);
  wire::view_as<wire::InaHeader>(hello.data()).magic.set(kInaMagic);
  window.accept(0, hello);
  EXPECT_EQ(window.answer(), MessageWindow::Answer::plain);
  EXPECT_EQ(window.state(), MessageWindow::State::greeting) << "ours is not acknowledged";
  EXPECT_TRUE(window.next());
  window.complete();
  EXPECT_EQ(window.state(), MessageWindow::State::idle);
}

// ------------------------------------------------------------------------------------ rendezvous

TEST(Rendezvous, GathersBlobsInRankOrder) {
  const std::string address = free_address();
  const auto endings = run_ranks(4, [&](std::uint16_t rank) {
    std::this_thread::sleep_for(milliseconds(20 * (3 - rank))); // rank 0 comes last
    Rendezvous rendezvous({rank, 4, address, milliseconds(5000)});
    for (std::size_t round = 1; round <= 3; ++round) {
      const Blob mine(rank * 50000 * round, static_cast<std::uint8_t>(rank));
      const std::vector<Blob> all = rendezvous.gather(mine);
      ASSERT_EQ(all.size(), 4U);
      for (std::size_t other = 0; other < 4; ++other) {
        EXPECT_EQ(all[other], Blob(other * 50000 * round, static_cast<std::uint8_t>(other)));
      }
    }
  });
  expect_none(endings);
}

TEST(Rendezvous, NamesTheMissingRank) {
  const std::string address = free_address();
  const auto endings = run_ranks(4, [&](std::uint16_t rank) {
    if (rank != 2) {
      Rendezvous rendezvous({rank, 4, address, milliseconds(300)});
      rendezvous.gather({});
    }
  });
  for (const std::size_t rank : {0, 1, 3}) {
    EXPECT_EQ(endings[rank].code, ErrorCode::rendezvous_timeout) << endings[rank].text;
    EXPECT_EQ(endings[rank].rank, 2);
    EXPECT_NE(endings[rank].text.find("rank 2 of 4"), std::string::npos) << endings[rank].text;
  }
}

TEST(Rendezvous, NamesRankZeroWhenNobodyListens) {
  const auto start = Clock::now();
  const Ending ending = ending_of([] {
    Rendezvous rendezvous({1, 2, free_address(), milliseconds(200)});
  });
  EXPECT_EQ(ending.code, ErrorCode::rendezvous_timeout);
  EXPECT_EQ(ending.rank, 0);
  EXPECT_LT(Clock::now() - start, milliseconds(2000));
}

TEST(Rendezvous, NamesWhoSaysAnotherWorld) {
  const std::string address = free_address();
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    const std::uint16_t world = rank == 1 ? 3 : 2;
    Rendezvous rendezvous({rank, world, address, milliseconds(2000)});
    rendezvous.gather({});
  });
  expect_all(endings, ErrorCode::mismatch);
  EXPECT_EQ(endings[0].rank, 1);
}

Socket connected_to(const std::string& address) {
  std::string cause;
  return connect_until(*Endpoint::parse(address), Clock::now() + milliseconds(2000), cause);
}

void say(const Socket& socket, std::string_view text) {
  ASSERT_EQ(send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

TEST(Rendezvous, ToleratesStrangers) {
  const std::string address = free_address();
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    Socket stranger;
    if (rank == 1) { // before it joins, while the door is sure to be open
      stranger = connected_to(address);
      say(stranger, "GET / HTTP/1.1\r\n\r\n");
    }
    Rendezvous rendezvous({rank, 2, address, milliseconds(5000)});
    rendezvous.gather({});
  });
  expect_none(endings);
}

TEST(Rendezvous, LetsNobodyWaitForSilentStrangers) {
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

TEST(Rendezvous, ClosesToWhoAnnouncesMoreThanAJoin) {
  const std::string address = free_address();
  Admission admission(listen_at(*Endpoint::parse(address)));
  const Socket stranger = connected_to(address);
  say(stranger, std::string_view("WCTL\x01\0\0\0\x05", 9)); // a join with five bytes
  EXPECT_FALSE(admission.next(Clock::now() + milliseconds(200)));
  std::uint8_t byte = 0;
  EXPECT_EQ(recv(stranger.get(), &byte, 1, MSG_DONTWAIT), 0) << "still open";
}

TEST(Rendezvous, ForgetsTheOldestOfTooManyStrangers) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max; // both ends of every connection are ours
  setrlimit(RLIMIT_NOFILE, &files);
  const std::string address = free_address();
  Admission admission(listen_at(*Endpoint::parse(address)));
  std::vector<Socket> strangers;
  for (std::size_t count = 0; count <= Admission::kMaxCallers; ++count) {
    strangers.push_back(connected_to(address));
  }
  EXPECT_FALSE(admission.next(Clock::now() + milliseconds(100)));
  const auto answer = [](const Socket& stranger) {
    std::uint8_t byte = 0;
    return recv(stranger.get(), &byte, 1, MSG_DONTWAIT);
  };
  EXPECT_EQ(answer(strangers[0]), 0) << "still open";
  EXPECT_EQ(answer(strangers[1]), -1) << "closed";
  FramedStream last(std::move(strangers.back()));
  ask_admission(last, 3, 5);
  const std::optional<Newcomer> newcomer = admission.next(Clock::now() + milliseconds(2000));
  ASSERT_TRUE(newcomer);
  EXPECT_EQ(newcomer->rank, 3);
  EXPECT_EQ(newcomer->world, 5);
}

// ------------------------------------------------------------------------------------------ jobs

/// A job of threads around one fabric.
struct JobPlan {
  std::uint16_t world = 2;
  std::vector<std::uint32_t> rings{1};
  std::uint32_t window = 3;
  std::uint32_t message_bytes = 1000;
  std::uint32_t mtu = 256;
  double loss = 0;
  std::uint64_t seed = 1;
  Fallback fallback = Fallback::none;
};

std::string ip_of(std::size_t rank) {
  return "10.7.0." + std::to_string(rank + 1);
}

CommunicatorOptions options_of(const JobPlan& plan, std::uint16_t rank,
                               const std::string& address) {
  CommunicatorOptions options;
  options.rings = plan.rings;
  options.rank = rank;
  options.world = plan.world;
  options.rendezvous = address;
  options.timeout = milliseconds(10'000);
  options.window = plan.window;
  options.message_bytes = plan.message_bytes;
  options.path_mtu = plan.mtu;
  options.ip = ip_of(rank);
  options.ack_timeout = milliseconds(40);
  options.epoch = 1; // every fabric is a fresh switch
  options.loss = plan.loss;
  options.fallback = plan.fallback;
  options.seed = plan.seed * 1000 + rank;
  return options;
}

std::vector<conn::RingSpec> rings_of(const JobPlan& plan) {
  std::vector<conn::RingSpec> rings;
  for (const std::uint32_t id : plan.rings) {
    conn::RingSpec ring{.id = id,
                        .window = plan.window,
                        .max_message_bytes = plan.message_bytes,
                        .mtu = static_cast<std::uint16_t>(plan.mtu),
                        .members = {}};
    for (std::size_t rank = 0; rank < plan.world; ++rank) {
      ring.members.push_back({*wire::parse_ip(ip_of(rank)), std::nullopt});
    }
    rings.push_back(ring);
  }
  return rings;
}

/// Every rank's tensor, from a seed.
template <typename Element>
std::vector<std::vector<Element>> tensors(std::uint16_t world, std::size_t count,
                                          std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<std::vector<Element>> all(world, std::vector<Element>(count));
  for (auto& tensor : all) {
    for (Element& element : tensor) {
      if constexpr (std::is_floating_point_v<Element>) {
        element = static_cast<Element>(static_cast<double>(engine() >> 11) * 0x1p-50 - 4);
      } else {
        element = static_cast<Element>(engine());
      }
    }
  }
  return all;
}

template <typename Element, typename Fold>
std::vector<Element> fold(const std::vector<std::vector<Element>>& inputs, Fold combine) {
  std::vector<Element> result = inputs[0];
  for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = combine(result[i], inputs[rank][i]);
    }
  }
  return result;
}

/// All-reduces `count` elements in place and out of place on one rank and compares.
template <typename Element, typename Fold>
void check_reduction(Communicator& communicator, std::size_t count, std::uint64_t seed,
                     DataType type, Operation operation, Fold combine) {
  const auto inputs = tensors<Element>(communicator.world(), count, seed);
  const std::vector<Element> expected = fold(inputs, combine);
  std::vector<Element> in = inputs[communicator.rank()];
  std::vector<Element> out(count);
  const auto same = [&](const std::vector<Element>& found) {
    return count == 0 || std::memcmp(found.data(), expected.data(), count * sizeof(Element)) == 0;
  };
  communicator.all_reduce(in.data(), out.data(), count, type, operation);
  EXPECT_TRUE(same(out)) << count << " of " << name_of(type) << " out of place";
  EXPECT_EQ(in, inputs[communicator.rank()]) << "the input was touched";
  communicator.all_reduce(in.data(), in.data(), count, type, operation);
  EXPECT_TRUE(same(in)) << count << " of " << name_of(type) << " in place";
}

constexpr auto kAdd = [](auto a, auto b) { return static_cast<decltype(a)>(a + b); };

void reduce_several(Communicator& communicator, std::uint64_t seed) {
  for (const std::size_t count : {0, 1, 2, 239, 240, 241, 5000}) {
    check_reduction<float>(communicator, count, seed + count, DataType::f32, Operation::sum, kAdd);
  }
  check_reduction<std::uint32_t>(communicator, 3000, seed, DataType::i32, Operation::sum, kAdd);
  check_reduction<double>(communicator, 1001, seed, DataType::f64, Operation::product,
                          [](double a, double b) { return a * b; });
  check_reduction<std::uint8_t>(communicator, 4001, seed, DataType::u8, Operation::bitwise_xor,
                                [](auto a, auto b) { return static_cast<std::uint8_t>(a ^ b); });
  check_reduction<std::int16_t>(communicator, 777, seed, DataType::i16, Operation::min,
                                [](auto a, auto b) { return b < a ? b : a; });
}

class Job : public testing::TestWithParam<JobPlan> {};

TEST_P(Job, ReducesExactly) {
  const JobPlan& plan = GetParam();
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Communicator communicator(options_of(plan, rank, address), fabric.open(rank));
    reduce_several(communicator, plan.seed);
    const CommunicatorStatistics statistics = communicator.statistics();
    EXPECT_EQ(plan.loss > 0, statistics.frames_lost_on_purpose > 0);
  });
  expect_none(endings);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, Job,
    testing::Values(JobPlan{.world = 2}, JobPlan{.world = 3}, JobPlan{.world = 4},
                    JobPlan{.world = 2, .window = 1, .message_bytes = 48},
                    JobPlan{.world = 3, .rings = {4, 5}},
                    JobPlan{.world = 2, .window = 8, .message_bytes = 16384, .mtu = 1024},
                    JobPlan{.world = 2, .loss = 0.05, .seed = 2},
                    JobPlan{.world = 3, .loss = 0.05, .seed = 3},
                    JobPlan{.world = 4, .rings = {1, 2}, .loss = 0.02, .seed = 4}));

class RingFallback : public testing::TestWithParam<JobPlan> {};

TEST_P(RingFallback, ReducesToTheSameBits) {
  JobPlan plan = GetParam();
  plan.fallback = Fallback::ring;
  HostFabric fabric({}, plan.world); // a plain learning switch
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Communicator communicator(options_of(plan, rank, address), fabric.open(rank));
    EXPECT_EQ(communicator.algorithm(), Algorithm::ring);
    EXPECT_NE(communicator.fallback_reason().find("no RESULT"), std::string::npos);
    reduce_several(communicator, plan.seed);
  });
  expect_none(endings);
}

INSTANTIATE_TEST_SUITE_P(Plans, RingFallback,
                         testing::Values(JobPlan{.world = 2}, JobPlan{.world = 3},
                                         JobPlan{.world = 4, .window = 9},
                                         JobPlan{.world = 5, .window = 1}, // inbox over 2N
                                         JobPlan{.world = 3, .rings = {4, 5}},
                                         JobPlan{.world = 2, .loss = 0.05, .seed = 2},
                                         JobPlan{.world = 4, .loss = 0.03, .seed = 3}));

TEST(Communicator, AFallbackThatIsAllowedIsNotTakenWithoutNeed) {
  const JobPlan plan{.world = 3, .fallback = Fallback::ring};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Communicator communicator(options_of(plan, rank, address), fabric.open(rank));
    EXPECT_EQ(communicator.algorithm(), Algorithm::in_switch);
    EXPECT_EQ(communicator.fallback_reason(), "");
    reduce_several(communicator, 1);
  });
  expect_none(endings);
}

TEST(Communicator, SeveralCallsMayBeUnderWay) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Communicator communicator(options_of(plan, rank, address), fabric.open(rank));
    constexpr std::size_t kCount = 2000;
    std::vector<std::vector<std::uint32_t>> buffers(5,
                                                    std::vector<std::uint32_t>(kCount, rank + 1));
    std::vector<Pending> pending;
    for (auto& buffer : buffers) {
      pending.push_back(communicator.start_all_reduce(buffer.data(), buffer.data(), kCount,
                                                      DataType::u32, Operation::sum));
    }
    const auto deadline = Clock::now() + milliseconds(10'000);
    while (!pending[0].test() && Clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(1)); // the communicator's own thread does the work
    }
    pending[4].wait();
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_TRUE(pending[i].test());
      EXPECT_EQ(pending[i].bytes_done(), kCount * 4);
      EXPECT_EQ(buffers[i], std::vector<std::uint32_t>(kCount, 6));
    }
  });
  expect_none(endings);
}

TEST(Communicator, AThreadThatWaitsHoldsUpNoOther) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  std::atomic<bool> came_through = false;
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Communicator communicator(options_of(plan, rank, address), fabric.open(rank));
    std::vector<std::uint32_t> first(2000, rank + 1);
    std::vector<std::uint32_t> second(2000, rank + 10);
    const auto start = [&](std::vector<std::uint32_t>& data) {
      return communicator.start_all_reduce(data.data(), data.data(), data.size(), DataType::u32,
                                           Operation::sum);
    };
    if (rank == 1) {
      EXPECT_TRUE(test::comes_true([&] { return came_through.load(); }, std::chrono::seconds(5)))
          << "rank 0 was held up until rank 1 called";
      start(first);
      start(second).wait();
    } else {
      Pending waited_for = start(first);
      std::thread waiter([&] { waited_for.wait(); });
      std::this_thread::sleep_for(milliseconds(30)); // the waiter waits
      Pending another = start(second);
      EXPECT_FALSE(another.test());
      EXPECT_FALSE(waited_for.test());
      EXPECT_EQ(communicator.statistics().results_received, 1U); // the hello's
      came_through = true;
      another.wait();
      waiter.join();
    }
    EXPECT_EQ(first, std::vector<std::uint32_t>(2000, 3));
    EXPECT_EQ(second, std::vector<std::uint32_t>(2000, 21));
  });
  expect_none(endings);
}

/// Losses put rank 0 behind now and then: it has learnt that rank 1 is gone when it starts the
/// second.
TEST(Communicator, ARankThatLeavesEndsTheCallsAfterItsLast) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const JobPlan plan{.world = 2, .loss = 0.1, .seed = seed};
    HostFabric fabric(rings_of(plan), plan.world, kSession);
    const std::string address = free_address();
    const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
      Communicator communicator(options_of(plan, rank, address), fabric.open(rank));
      std::vector<std::uint32_t> data(500, rank + 1);
      const auto call = [&] {
        return communicator.start_all_reduce(data.data(), data.data(), data.size(), DataType::u32,
                                             Operation::sum);
      };
      Pending first = call();
      if (rank == 1) {
        first.wait();
        return;
      }
      Pending second = call();
      const Ending ending = ending_of([&] {
        while (!second.test()) {
          std::this_thread::sleep_for(milliseconds(1));
        }
      });
      EXPECT_EQ(ending.code, ErrorCode::peer_died) << ending.text;
      EXPECT_EQ(ending.rank, 1);
      EXPECT_TRUE(first.test());
      EXPECT_EQ(ending_of([&] { call(); }).code, ErrorCode::peer_died);
    });
    expect_none(endings);
  }
}

/// Frames of another device, until it breaks in a way that the library does not know.
class FragileIo : public FrameIo {
 public:
  FragileIo(std::unique_ptr<FrameIo> device, const std::atomic<bool>& is_broken)
      : device_(std::move(device)), is_broken_(is_broken) {}

  wire::MacAddress mac() const override { return device_->mac(); }

  std::size_t receive(FrameReader& reader) override {
    if (is_broken_) {
      throw std::runtime_error("the device is broken");
    }
    return device_->receive(reader);
  }

  std::span<std::uint8_t> reserve(std::size_t bytes) override { return device_->reserve(bytes); }

  void commit(std::size_t frame_bytes) override { device_->commit(frame_bytes); }

  void flush() override { device_->flush(); }

  void wait(std::chrono::microseconds patience) override { device_->wait(patience); }

 private:
  std::unique_ptr<FrameIo> device_;
  const std::atomic<bool>& is_broken_;
};

TEST(Communicator, WhateverADeviceThrowsEndsTheJob) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  std::atomic<int> reduced = 0;
  std::atomic<bool> is_broken = false;
  const std::atomic<bool> never = false;
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    auto device = std::make_unique<FragileIo>(fabric.open(rank), rank == 1 ? is_broken : never);
    Communicator communicator(options_of(plan, rank, address), std::move(device));
    std::vector<std::uint32_t> data(500, 1);
    const auto reduce = [&] {
      communicator.all_reduce(data.data(), data.data(), data.size(), DataType::u32, Operation::sum);
    };
    reduce();
    ++reduced;
    if (rank == 1) {
      while (reduced < plan.world) {
        std::this_thread::yield();
      }
      is_broken = true;
    }
    const Ending ending = ending_of(reduce);
    EXPECT_EQ(ending.code, ErrorCode::transport_failure) << ending.text;
    EXPECT_EQ(ending.rank, 1) << ending.text;
    EXPECT_EQ(ending.text, "the device is broken");
    EXPECT_EQ(ending_of(reduce).code, ErrorCode::transport_failure);
    communicator.statistics();
  });
  expect_none(endings);
}

/// How long rank 0 takes to close when rank 1 does so `later`.
milliseconds closing_time(milliseconds timeout, milliseconds later) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  milliseconds taken{};
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    CommunicatorOptions options = options_of(plan, rank, address);
    options.timeout = timeout;
    auto communicator = std::make_unique<Communicator>(options, fabric.open(rank));
    std::vector<std::uint32_t> data(100, 1);
    communicator->all_reduce(data.data(), data.data(), 100, DataType::u32, Operation::sum);
    if (rank == 1) {
      std::this_thread::sleep_for(later);
    }
    const auto start = Clock::now();
    communicator.reset();
    if (rank == 0) {
      taken = std::chrono::duration_cast<milliseconds>(Clock::now() - start);
    }
  });
  expect_none(endings);
  return taken;
}

TEST(Communicator, StaysUntilAllHaveClosed) {
  EXPECT_GE(closing_time(milliseconds(10'000), milliseconds(1500)), milliseconds(1000));
}

TEST(Communicator, StaysNoLongerThanItsTimeout) {
  const milliseconds taken = closing_time(milliseconds(500), milliseconds(3000));
  EXPECT_GE(taken, milliseconds(400));
  EXPECT_LT(taken, milliseconds(2500));
}

TEST(Communicator, ClosingEndsAWaitElsewhere) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    auto communicator =
        std::make_unique<Communicator>(options_of(plan, rank, address), fabric.open(rank));
    std::vector<std::uint32_t> data(2000, 1);
    const auto call = [&] {
      return communicator->start_all_reduce(data.data(), data.data(), data.size(), DataType::u32,
                                            Operation::sum);
    };
    if (rank == 1) {
      std::this_thread::sleep_for(milliseconds(200)); // rank 0 is gone by then
      call().wait();
      return;
    }
    Pending pending = call();
    Ending ending;
    std::thread waiter([&] { ending = ending_of([&] { pending.wait(); }); });
    std::this_thread::sleep_for(milliseconds(30));
    communicator.reset();
    waiter.join();
    EXPECT_EQ(ending.code, ErrorCode::peer_died) << ending.text;
    EXPECT_EQ(ending.rank, 0);
  });
  EXPECT_FALSE(endings[0].code) << endings[0].text;
  EXPECT_EQ(endings[1].code, ErrorCode::peer_died) << endings[1].text;
  EXPECT_EQ(endings[1].rank, 0);
}

TEST(Communicator, JobsMayFollowEachOtherAtOnce) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  for (int job = 0; job < 3; ++job) {
    const std::string address = free_address();
    const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
      CommunicatorOptions options = options_of(plan, rank, address);
      options.epoch = 0;
      Communicator communicator(options, fabric.open(rank));
      std::vector<std::uint32_t> data(3000, rank + 1);
      communicator.all_reduce(data.data(), data.data(), data.size(), DataType::u32, Operation::sum);
      EXPECT_EQ(data, std::vector<std::uint32_t>(3000, 3));
    });
    expect_none(endings);
  }
}

TEST(Communicator, WithoutTheRingNobodyAggregates) {
  const JobPlan plan{.world = 3};
  HostFabric fabric({}, plan.world); // a plain learning switch
  const std::string address = free_address();
  const auto start = Clock::now();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Communicator communicator(options_of(plan, rank, address), fabric.open(rank));
  });
  expect_all(endings, ErrorCode::not_aggregated);
  EXPECT_LT(Clock::now() - start, milliseconds(5000));
}

TEST(Communicator, ARestartedSwitchEndsTheJobInBoundedTime) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  std::atomic<int> arrived = 0;
  const auto start = Clock::now();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Communicator communicator(options_of(plan, rank, address), fabric.open(rank));
    std::vector<std::uint32_t> data(3000, 1);
    communicator.all_reduce(data.data(), data.data(), data.size(), DataType::u32, Operation::sum);
    ++arrived;
    while (arrived < 3) {
      std::this_thread::yield();
    }
    if (rank == 0) {
      fabric.restart(kSession + 1);
    }
    communicator.all_reduce(data.data(), data.data(), data.size(), DataType::u32, Operation::sum);
  });
  expect_all(endings, ErrorCode::retry_exceeded);
  EXPECT_LT(Clock::now() - start, milliseconds(8000));
}

TEST(Communicator, ACutLinkEndsTheJobInBoundedTime) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  fabric.cut();
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Communicator communicator(options_of(plan, rank, address), fabric.open(rank));
  });
  expect_all(endings, ErrorCode::retry_exceeded);
}

TEST(Communicator, NamesOptionsThatDiffer) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    CommunicatorOptions options = options_of(plan, rank, address);
    if (rank == 1) {
      options.window = 5;
    }
    Communicator communicator(options, fabric.open(rank));
  });
  expect_all(endings, ErrorCode::mismatch);
  EXPECT_EQ(endings[0].rank, 1);
  EXPECT_NE(endings[0].text.find("window 5"), std::string::npos) << endings[0].text;
}

TEST(Communicator, NamesTheRankWhoseCallDiffers) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Communicator communicator(options_of(plan, rank, address), fabric.open(rank));
    std::vector<float> data(100, 1);
    communicator.all_reduce(data.data(), data.data(), rank == 2 ? 99 : 100, DataType::f32,
                            Operation::sum);
  });
  expect_all(endings, ErrorCode::mismatch);
  for (const Ending& ending : endings) {
    EXPECT_EQ(ending.rank, 2) << ending.text;
  }
}

TEST(Communicator, NamesTheRankThatDoesNotCall) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  std::atomic<int> failed = 0;
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    CommunicatorOptions options = options_of(plan, rank, address);
    options.timeout = milliseconds(500);
    Communicator communicator(options, fabric.open(rank));
    if (rank == 1) {
      while (failed < 2) { // computes too long
        std::this_thread::sleep_for(milliseconds(1));
      }
      return;
    }
    std::vector<float> data(100, 1);
    const Ending ending = ending_of([&] {
      communicator.all_reduce(data.data(), data.data(), 100, DataType::f32, Operation::sum);
    });
    EXPECT_EQ(ending.code, ErrorCode::timeout) << ending.text;
    EXPECT_EQ(ending.rank, 1) << ending.text;
    ++failed;
  });
  expect_none(endings);
}

TEST(Communicator, NamesTheRankThatLeft) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Communicator communicator(options_of(plan, rank, address), fabric.open(rank));
    if (rank != 1) {
      std::vector<float> data(100, 1);
      communicator.all_reduce(data.data(), data.data(), 100, DataType::f32, Operation::sum);
    }
  });
  EXPECT_FALSE(endings[1].code) << endings[1].text;
  for (const std::size_t rank : {0, 2}) {
    EXPECT_EQ(endings[rank].code, ErrorCode::peer_died) << endings[rank].text;
    EXPECT_EQ(endings[rank].rank, 1);
  }
}

TEST(Communicator, AnErrorStays) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Communicator communicator(options_of(plan, rank, address), fabric.open(rank));
    std::vector<float> data(100, 1);
    const auto call = [&] {
      communicator.all_reduce(data.data(), data.data(), 50 + rank, DataType::f32, Operation::sum);
    };
    EXPECT_EQ(ending_of(call).code, ErrorCode::mismatch);
    EXPECT_EQ(ending_of(call).code, ErrorCode::mismatch);
  });
  expect_none(endings);
}

TEST(CApi, TellsWhatIsWrongAndNames) {
  weir_options options;
  weir_options_init(&options);
  weir_communicator* communicator = nullptr;
  EXPECT_EQ(weir_open(&options, &communicator), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(communicator, nullptr);
  EXPECT_TRUE(std::string(weir_last_error()).starts_with("rendezvous: found ''"))
      << weir_last_error();
  const std::string address = free_address();
  options.rendezvous = address.c_str();
  options.device = "no-such-device";
  options.ip = "10.0.0.1";
  EXPECT_EQ(weir_open(&options, &communicator), WEIR_TRANSPORT_FAILURE);
  EXPECT_NE(std::string(weir_last_error()).find("no-such-device"), std::string::npos);
  EXPECT_EQ(weir_last_error_rank(), -1);
  EXPECT_STREQ(weir_status_name(WEIR_TRANSPORT_FAILURE), "transport_failure");
  EXPECT_STREQ(weir_status_name(WEIR_RENDEZVOUS_TIMEOUT), "rendezvous_timeout");
  EXPECT_STREQ(weir_status_name(WEIR_PENDING), "pending");
  weir_close(nullptr);
}

TEST(Communicator, OptionsOutOfRangeAreNamed) {
  struct Case {
    std::function<void(CommunicatorOptions&)> hurt;
    const char* option;
  };

  const std::vector<Case> cases{
      {[](auto& o) { o.world = 1; }, "world"},
      {[](auto& o) { o.rank = 2; }, "rank"},
      {[](auto& o) { o.rings = {}; }, "rings"},
      {[](auto& o) {
         o.rings = {1, 1};
       },
       "rings"},
      {[](auto& o) { o.rendezvous = "here"; }, "rendezvous"},
      {[](auto& o) { o.window = 0; }, "window"},
      {[](auto& o) { o.path_mtu = 1500; }, "path_mtu"},
      {[](auto& o) { o.message_bytes = 47; }, "message_bytes"},
      {[](auto& o) { o.retry_count = 8; }, "retry_count"},
      {[](auto& o) { o.loss = 1; }, "loss"},
      {[](auto& o) { o.ip = "10.0.0"; }, "ip"},
      {[](auto& o) { o.mac = "02"; }, "mac"},
  };
  const CommunicatorOptions good = options_of({}, 0, "127.0.0.1:1");
  EXPECT_EQ(find_defect(good), "");
  for (const Case& entry : cases) {
    CommunicatorOptions options = good;
    entry.hurt(options);
    EXPECT_TRUE(find_defect(options).starts_with(entry.option)) << find_defect(options);
  }
}

} // namespace
} // namespace weir::host
