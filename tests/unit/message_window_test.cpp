// SPDX-License-Identifier: BSD-3-Clause

/// The message window, as tables.

#include "host/collective/message_window.hpp"
#include "host_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <functional>
#include <string>
#include <vector>

namespace weir::host::message_window_test {
namespace {

constexpr WindowConfig kWindow{.ring = 9,
                               .rank = 2,
                               .world = 3,
                               .window = 2,
                               .message_bytes = 40 + 16,
                               .epoch = 5,
                               .nonce = 0x01020304,
                               .qp = 0x0a0b0c,
                               .ack_timeout = 14};

/// The result of a message as the switch sends it: the predecessor's header with RESULT. A hello's
/// result has the nonce as message number.
Bytes result_for(const MessageWindow::Outgoing& message, std::uint32_t session = kSession) {
  Bytes bytes(message.header.begin(), message.header.end());
  bytes.resize(kInaHeaderBytes + message.piece.bytes, 0xab);
  auto& header = wire::view_as<wire::InaHeader>(bytes.data());
  header.flags = kInaFlagResult;
  header.rank.set(kWindow.predecessor());
  if (message.number == 0) {
    header.message_id.set(header.session.get());
  }
  header.session.set(session);
  return bytes;
}

wire::InaHeader header_of(const Bytes& message) {
  return wire::view_as<wire::InaHeader>(message.data());
}

void greet(MessageWindow& window) {
  const auto hello = window.next();
  ASSERT_TRUE(hello);
  window.accept(message_in_one_piece(0, result_for(*hello)));
  window.complete();
  ASSERT_EQ(window.state(), MessageWindow::State::idle);
}

TEST(MessageWindow, SaysHelloFirstAndNothingElse) {
  MessageWindow window(kWindow);
  const auto hello = window.next();
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->number, 0U);
  EXPECT_EQ(hello->piece.bytes, 0U);
  const Bytes expected{0x57, 0x45, 0x49, 0x52, 2, 0,  0, 0, 0, 0,  0,  9, 0, 2,
                       0,    3,    0,    0,    0, 0,  0, 0, 0, 0,  0,  0, 0, 5,
                       0x01, 0x02, 0x03, 0x04, 1, 14, 0, 0, 0, 10, 11, 12};
  EXPECT_EQ(Bytes(hello->header.begin(), hello->header.end()), expected);
  EXPECT_FALSE(window.next());
}

/// The answer to a hello that names two operators, whose data are `table`.
std::bitset<kMostOperators> operators_after(const std::function<void(Bytes& table)>& change) {
  WindowConfig config = kWindow;
  config.message_bytes = 200;
  config.operators.add({1, 2, 3});
  config.operators.add({4, 5, 6});
  MessageWindow window(config);
  const auto hello = window.next();
  Bytes answer = result_for(*hello);
  Bytes table(hello->table.begin(), hello->table.end());
  EXPECT_EQ(table.size(), 80U);
  change(table);
  answer.insert(answer.end(), table.begin(), table.end());
  window.accept(message_in_one_piece(0, answer));
  return window.operators();
}

TEST(MessageWindow, TakesFromTheHellosResultWhichOperatorsTheNetworkHas) {
  EXPECT_EQ(operators_after([](Bytes&) {}), 0b11U);
  EXPECT_EQ(operators_after([](Bytes& table) { std::fill_n(table.begin(), 40, 0); }), 0b10U)
      << "a switch lacks the first one";
}

TEST(MessageWindow, RefusesAnAnswerWithAnOperatorThatItHasNotNamed) {
  const auto refused = [](const std::function<void(Bytes&)>& change) -> std::string {
    try {
      operators_after(change);
    } catch (const Error& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_EQ(refused([](Bytes& table) { table[40 + 8] ^= 1; }),
            "ring 9: the hello's result has another operator 1 than this rank's");
  EXPECT_EQ(refused([](Bytes& table) { table[0] = 129; }),
            "ring 9: the hello's result has another operator 0 than this rank's")
      << "by another number";
  EXPECT_EQ(refused([](Bytes& table) { table.resize(120); }),
            "ring 9: message 0 from rank 1: found 160 bytes; 120 are due");
}

TEST(MessageWindow, TakesSessionFromHelloAndPutsItIntoEveryMessage) {
  MessageWindow window(kWindow);
  greet(window);
  EXPECT_EQ(window.session(), kSession);
  window.begin({.type = DataType::i32, .operation = Operation::max, .segment_bytes = 20});
  const auto first = window.next();
  ASSERT_TRUE(first);
  const Bytes expected{0x57, 0x45, 0x49, 0x52, 2, 2, 1, 0, 0, 0, 0, 9, 0, 2, 0, 3, 0, 0, 0, 1,
                       0,    0,    0,    16,   0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(Bytes(first->header.begin(), first->header.end()), expected);
}

TEST(MessageWindow, ABroadcastNamesItsRootAndABarrierHasNoData) {
  MessageWindow window(kWindow);
  greet(window);
  window.begin({.collective = Collective::broadcast, .root = 2, .segment_bytes = 8});
  const Bytes broadcast = result_for(*window.next());
  EXPECT_EQ(header_of(broadcast).message_length.get(), 8U) << "msg_len";
  EXPECT_EQ(broadcast[32], 2) << "collective";
  EXPECT_EQ(header_of(broadcast).root.get(), 2U) << "root";
  EXPECT_FALSE(window.next());
  window.accept(message_in_one_piece(1, broadcast));
  window.complete();
  window.begin({.collective = Collective::barrier});
  const Bytes barrier = result_for(*window.next());
  EXPECT_EQ(header_of(barrier).message_length.get(), 0U) << "msg_len";
  EXPECT_EQ(barrier[32], 3) << "collective";
  EXPECT_EQ(header_of(barrier).root.get(), 0U) << "root";
  EXPECT_FALSE(window.next());
}

TEST(MessageWindow, EachSegmentOfAnAllGatherHasItsOwnRootAndMessages) {
  MessageWindow window(kWindow);
  greet(window);
  window.begin(
      {.collective = Collective::broadcast, .root_step = 1, .segments = 3, .segment_bytes = 20});
  std::vector<std::uint64_t> seen;
  while (const auto message = window.next()) {
    seen.push_back(header_of(result_for(*message)).root.get() * 1000 + message->piece.offset * 10 +
                   message->piece.bytes);
    window.accept(
        message_in_one_piece(static_cast<std::uint32_t>(message->number), result_for(*message)));
    window.complete();
  }
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{16, 164, 1016, 1164, 2016, 2164}));
}

TEST(MessageWindow, SendsMessageMOnceTheResultOfMMinusNIsIn) {
  MessageWindow window(kWindow);
  greet(window);
  window.begin({.type = DataType::f32, .operation = Operation::sum, .segment_bytes = 16 * 5 + 4});
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
    const auto piece = window.accept(
        message_in_one_piece(static_cast<std::uint32_t>(received + 1), result_for(sent[received])));
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
  window.begin({.type = DataType::f32, .operation = Operation::sum, .segment_bytes = 16 * 8});
  std::vector<MessageWindow::Outgoing> sent;
  for (std::uint32_t received = 0; received < 8; ++received) {
    while (const auto message = window.next()) {
      sent.push_back(*message);
    }
    if (received == sent.size()) {
      break;
    }
    window.accept(message_in_one_piece(received + 1, result_for(sent[received])));
  }
  EXPECT_EQ(sent.size(), 4U) << "2N, as nothing was acknowledged";
  window.complete();
  EXPECT_TRUE(window.next());
}

TEST(MessageWindow, NumbersRunOnFromOneTensorToTheNext) {
  MessageWindow window(kWindow);
  greet(window);
  for (std::uint32_t id = 1; id <= 3; ++id) {
    window.begin({.type = DataType::u8, .operation = Operation::sum, .segment_bytes = 8});
    const auto message = window.next();
    ASSERT_TRUE(message);
    EXPECT_EQ(message->number, id);
    EXPECT_FALSE(window.next());
    window.accept(message_in_one_piece(id, result_for(*message)));
    EXPECT_EQ(window.state(), MessageWindow::State::working) << "not acknowledged";
    window.complete();
    EXPECT_EQ(window.state(), MessageWindow::State::idle);
  }
}

TEST(MessageWindow, AnEmptyTensorIsOverAtOnce) {
  MessageWindow window(kWindow);
  greet(window);
  window.begin({.type = DataType::f32, .operation = Operation::sum, .segment_bytes = 0});
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
      {"version", [](auto& h) { h.version = 1; }, ErrorCode::mismatch},
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
    window.begin({.type = DataType::f32, .operation = Operation::sum, .segment_bytes = 16});
    Bytes bytes = result_for(*window.next());
    entry.hurt(wire::view_as<wire::InaHeader>(bytes.data()));
    const Ending ending = ending_of([&] { window.accept(message_in_one_piece(1, bytes)); });
    ASSERT_TRUE(ending.code) << entry.description;
    EXPECT_EQ(*ending.code, entry.code) << entry.description << ": " << ending.text;
    EXPECT_EQ(ending.rank, 1) << entry.description;
  }
}

TEST(MessageWindow, RefusesWrongImmediateLengthAndUnaskedResult) {
  MessageWindow window(kWindow);
  greet(window);
  window.begin({.type = DataType::f32, .operation = Operation::sum, .segment_bytes = 32});
  const auto message = window.next();
  Bytes bytes = result_for(*message);
  EXPECT_EQ(ending_of([&] { window.accept(message_in_one_piece(2, bytes)); }).code,
            ErrorCode::transport_failure);
  bytes.pop_back();
  EXPECT_EQ(ending_of([&] { window.accept(message_in_one_piece(1, bytes)); }).code,
            ErrorCode::transport_failure);
  EXPECT_EQ(ending_of([&] { window.accept(message_in_one_piece(1, Bytes(39))); }).code,
            ErrorCode::transport_failure);
  window.accept(message_in_one_piece(1, result_for(*message)));
  Bytes next = result_for(*message);
  wire::view_as<wire::InaHeader>(next.data()).message_id.set(2);
  EXPECT_EQ(ending_of([&] { window.accept(message_in_one_piece(2, next)); }).code,
            ErrorCode::transport_failure);
}

TEST(MessageWindow, AHelloWithoutSessionIsRefused) {
  MessageWindow window(kWindow);
  const auto hello = window.next();
  EXPECT_EQ(ending_of([&] { window.accept(message_in_one_piece(0, result_for(*hello, 0))); }).code,
            ErrorCode::mismatch);
}

/// A hello of our epoch, but of a run that died. With or without RESULT, it neither answers nor
/// ends ours.
TEST(MessageWindow, IgnoresTheHelloOfAnotherRun) {
  for (const std::uint8_t flags : {kInaFlagResult, std::uint8_t{0}}) {
    MessageWindow window(kWindow);
    const auto hello = window.next();
    ASSERT_TRUE(hello);
    Bytes late = result_for(*hello, 99);
    auto& header = wire::view_as<wire::InaHeader>(late.data());
    header.flags = flags;
    (flags == 0 ? header.session : header.message_id).set(kWindow.nonce + 1);
    EXPECT_EQ(window.accept(message_in_one_piece(0, late)).bytes, 0U);
    window.complete();
    EXPECT_EQ(window.state(), MessageWindow::State::greeting);
    EXPECT_EQ(window.answer(), MessageWindow::Answer::none);
    EXPECT_NE(window.describe().find("hellos of other runs came"), std::string::npos);
    window.accept(message_in_one_piece(0, result_for(*hello)));
    EXPECT_EQ(window.answer(), MessageWindow::Answer::aggregated);
    EXPECT_EQ(window.session(), kSession);
    EXPECT_EQ(window.state(), MessageWindow::State::idle);
  }
}

TEST(MessageWindow, APlainHelloMayComeBeforeOurOwnLeft) {
  MessageWindow window(kWindow);
  Bytes hello(kInaHeaderBytes);
  auto& header = wire::view_as<wire::InaHeader>(hello.data());
  header.magic.set(kInaMagic);
  header.session.set(kWindow.nonce);
  window.accept(message_in_one_piece(0, hello));
  EXPECT_EQ(window.answer(), MessageWindow::Answer::plain);
  EXPECT_EQ(window.state(), MessageWindow::State::greeting) << "ours is not acknowledged";
  EXPECT_TRUE(window.next());
  window.complete();
  EXPECT_EQ(window.state(), MessageWindow::State::idle);
}

} // namespace
} // namespace weir::host::message_window_test
