// SPDX-License-Identifier: BSD-3-Clause

/// What a server is asked about its links, and about who may ask its switch.

#include "support/fake_server.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <memory>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string>

namespace weir::server_links_test {
namespace {

using server::Pause;
using server::Rank;
using test::finding;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

config::Config with_interface() {
  config::Config config;
  config.ports = {{.name = "p0", .device = "net_af_packet0,iface=eth9", .mtu = 9000}};
  return config;
}

class Link : public testing::Test {
 protected:
  Link() {
    put("flags", "0x1003\n");
    put("carrier", "1\n");
    put("speed", "100000\n");
    put("mtu", "9000\n");
  }

  void put(const std::string& name, const std::string& text) {
    machine_.file("/sys/class/net/eth9/" + name, text);
  }

  auto asked(std::string_view question) const { return machine_.ask(question, with_interface()); }

  test::FakeServer machine_;
};

TEST_F(Link, IsUp) {
  EXPECT_THAT(asked("link"), ElementsAre(finding(Rank::fine, "p0: eth9 is up, 100000 Mbit/s")));
  put("speed", "-1\n");
  const auto found = asked("link");
  EXPECT_THAT(found, ElementsAre(finding(Rank::fine, "p0: eth9 is up")));
  EXPECT_THAT(found[0].found, Not(HasSubstr("Mbit")));
}

TEST_F(Link, IsDown) {
  put("carrier", "0\n");
  auto found = asked("link");
  EXPECT_THAT(found, ElementsAre(finding(Rank::warning, "eth9 has no link")));
  EXPECT_THAT(found[0].mend, HasSubstr("ethtool eth9"));
  put("flags", "0x1002\n");
  found = asked("link");
  EXPECT_THAT(found, ElementsAre(finding(Rank::warning, "eth9 is down")));
  EXPECT_EQ(found[0].mend, "ip link set eth9 up");
}

TEST_F(Link, IsNotThere) {
  machine_.without("/sys/class/net/eth9");
  EXPECT_THAT(asked("link"),
              ElementsAre(finding(Rank::wrong, "eth9 is no interface of this machine")));
  EXPECT_THAT(asked("MTU"), IsEmpty());
}

TEST_F(Link, IsTooNarrow) {
  EXPECT_THAT(asked("MTU"),
              ElementsAre(finding(Rank::fine, "eth9 has 9000; the port is to have 9000")));
  put("mtu", "1500\n");
  const auto found = asked("MTU");
  EXPECT_THAT(found,
              ElementsAre(finding(Rank::warning, "eth9 has 1500; the port is to have 9000")));
  EXPECT_EQ(found[0].mend, "ip link set eth9 mtu 9000");
}

TEST_F(Link, IsPaused) {
  EXPECT_THAT(asked("pause"), ElementsAre(finding(Rank::unknown, "its driver does not tell")));
  machine_.pause = Pause{.receives = true, .sends = true};
  EXPECT_THAT(asked("pause"), ElementsAre(finding(Rank::fine, "heeds and sends pause frames")));
  machine_.pause = Pause{.receives = false, .sends = true};
  const auto found = asked("pause");
  EXPECT_THAT(found,
              ElementsAre(finding(Rank::warning, "heeds pause frames: no, sends them: yes")));
  EXPECT_THAT(found[0].mend, HasSubstr("ethtool -A eth9 rx on tx on"));
}

TEST_F(Link, OfMellanoxIsThatOfItsInterface) {
  config::Config config;
  config.ports = {{.name = "p1", .device = "0000:3b:00.0"}};
  machine_.file("/sys/bus/pci/devices/0000:3b:00.0/vendor", "0x15b3\n");
  machine_.folder("/sys/bus/pci/devices/0000:3b:00.0/net/eth9");
  EXPECT_THAT(machine_.ask("link", config), ElementsAre(finding(Rank::fine, "p1: eth9 is up")));
  machine_.file("/sys/bus/pci/devices/0000:3b:00.0/vendor", "0x8086\n");
  for (const char* question : {"link", "MTU", "pause"}) {
    EXPECT_THAT(machine_.ask(question, config),
                ElementsAre(finding(Rank::unknown, "port p1: not known before the start")));
  }
}

TEST(ControlSocket, IsAtAPlaceOfTheSwitchsOwn) {
  test::FakeServer machine;
  config::Config config;
  config.control.is_default = false;
  config.control.local = {"/run/weir/control.sock"};
  auto found = machine.ask("control socket", config);
  EXPECT_THAT(found, ElementsAre(finding(Rank::warning, "its folder is not there")));
  EXPECT_THAT(found[0].mend, HasSubstr("/run/weir"));
  machine.folder("/run/weir");
  EXPECT_THAT(machine.ask("control socket", config),
              ElementsAre(finding(Rank::fine, "/run/weir/control.sock")));
  std::filesystem::permissions(machine.path() / "run/weir", std::filesystem::perms::all);
  found = machine.ask("control socket", config);
  EXPECT_THAT(found, ElementsAre(finding(Rank::warning, "may be written to by others")));
  EXPECT_EQ(found[0].mend, "chmod go-w /run/weir");
}

TEST(ControlSocket, HasAListener) {
  test::FakeServer machine;
  config::Config config;
  config.control.is_default = false;
  config.control.local = {"/run/weir/control.sock"};
  machine.folder("/run/weir");
  const std::string head = "Num       RefCount Protocol Flags    Type St Inode Path\n";
  machine.file(
      "/proc/net/unix",
      head + "0000000000000000: 00000003 00000000 00000000 0001 03 24 /run/weir/control.sock\n");
  EXPECT_THAT(machine.ask("control socket", config), ElementsAre(finding(Rank::fine, "")));
  machine.file(
      "/proc/net/unix",
      head + "0000000000000000: 00000002 00000000 00010000 0001 01 24 /run/weir/control.sock\n");
  EXPECT_THAT(machine.ask("control socket", config),
              ElementsAre(finding(Rank::unknown, "listens there already")));
}

/// Where the file names none.
TEST(ControlSocket, IsInTheServicesFolder) {
  test::FakeServer machine;
  machine.folder("/run/weir");
  EXPECT_THAT(machine.ask("control socket", {}), IsEmpty());
  setenv("RUNTIME_DIRECTORY", "/run/weir:/run/other", 1);
  EXPECT_THAT(machine.ask("control socket", {}),
              ElementsAre(finding(Rank::fine, "/run/weir/control.sock")));
  config::Config config;
  config.control.is_default = false;
  config.control.local = {"/run/other.sock"};
  EXPECT_THAT(machine.ask("control socket", config),
              ElementsAre(finding(Rank::fine, "/run/other.sock")));
  unsetenv("RUNTIME_DIRECTORY");
}

/// A certificate in PEM that ends so many seconds from now. Nobody has signed it.
std::string certificate_for(long seconds) {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                &EVP_PKEY_free);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -1);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), seconds);
  X509_set_pubkey(certificate.get(), key.get());
  X509_sign(certificate.get(), key.get(), EVP_sha256());
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new(BIO_s_mem()), &BIO_free);
  PEM_write_bio_X509(text.get(), certificate.get());
  char* bytes = nullptr;
  const long length = BIO_get_mem_data(text.get(), &bytes);
  return {bytes, static_cast<std::size_t>(length)};
}

class Certificates : public testing::Test {
 protected:
  static constexpr long kDay = 86400;

  Certificates() {
    config_.control.tls =
        gate::TlsFiles{"/etc/weir/own.pem", "/etc/weir/key.pem", "/etc/weir/ca.pem"};
    machine_.file("/etc/weir/own.pem", certificate_for(400 * kDay + 60));
    machine_.file("/etc/weir/key.pem", "a key");
    machine_.file("/etc/weir/ca.pem", certificate_for(31 * kDay + 60));
  }

  auto asked() const { return machine_.ask("certificates", config_); }

  test::FakeServer machine_;
  config::Config config_;
};

TEST_F(Certificates, LastLongEnough) {
  EXPECT_THAT(
      asked(),
      ElementsAre(
          finding(Rank::fine, "control.tls.certificate: /etc/weir/own.pem ends in 400 days"),
          finding(Rank::fine, "control.tls.key: /etc/weir/key.pem"),
          finding(Rank::fine, "control.tls.client_authority: /etc/weir/ca.pem ends in 31 days")));
  EXPECT_THAT(machine_.ask("certificates", {}), IsEmpty());
}

TEST_F(Certificates, EndSoon) {
  machine_.file("/etc/weir/ca.pem", certificate_for(29 * kDay + 60));
  const auto found = asked();
  EXPECT_THAT(found[2], finding(Rank::warning, "/etc/weir/ca.pem ends in 29 days"));
  EXPECT_THAT(found[2].mend, HasSubstr("openssl x509"));
}

/// One of a chain is enough.
TEST_F(Certificates, AreOver) {
  const std::string valid = certificate_for(400 * kDay);
  const std::string over = certificate_for(-3 * kDay - 60);
  for (const std::string& chain : {valid + over, over + valid}) {
    machine_.file("/etc/weir/own.pem", chain);
    EXPECT_THAT(asked()[0], finding(Rank::warning, "has ended 3 days ago"));
  }
}

TEST_F(Certificates, AreNotThere) {
  machine_.file("/etc/weir/own.pem", "no certificate\n");
  machine_.without("/etc/weir/key.pem");
  const auto found = asked();
  EXPECT_THAT(found[0], finding(Rank::warning, "/etc/weir/own.pem has no certificate"));
  EXPECT_THAT(found[1], finding(Rank::warning, "/etc/weir/key.pem cannot be read by this user"));
}

} // namespace
} // namespace weir::server_links_test
