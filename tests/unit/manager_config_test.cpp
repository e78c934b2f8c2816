// SPDX-License-Identifier: BSD-3-Clause

#include "manager/config.hpp"
#include "support/temporary_folder.hpp"
#include "yaml/error.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <gmock/gmock.h>
#include <string>
#include <vector>

namespace weir::manager::manager_config_test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::ThrowsMessage;

constexpr const char* kTopology =
    "nodes:\n"
    "  - { name: host0, address: [10.0.0.1] }\n"
    "  - { name: host1, address: [10.0.0.2] }\n"
    "switches:\n"
    "  - { name: leaf0, control: \"unix:/leaf0\" }\n"
    "links:\n"
    "  - { between: [\"host[0-1]\", leaf0], rate: 100Gbit/s, latency: 1us }\n";

class StoreOfConfig : public testing::Test {
 protected:
  Config load(const std::string& store, const std::string& fabric = "lab",
              const std::string& more = "") const {
    write("topology.yaml", kTopology);
    write("manager.yaml", "fabric: " + fabric + more + "\nlisten: [\"unix:/m\"]\nstore: { " +
                              store + " }\ntopology: topology.yaml\n");
    return load_config(folder_.path() / "manager.yaml");
  }

  /// With TLS, whose files are read at a start.
  void listen(const std::string& address) const {
    write("topology.yaml", kTopology);
    write("manager.yaml", "fabric: lab\nlisten: [\"" + address +
                              "\"]\ntls: { certificate: c, key: k, client_authority: a, "
                              "switch_authority: s }\nstore: { sqlite: f }\n"
                              "topology: topology.yaml\n");
    load_config(folder_.path() / "manager.yaml");
  }

  /// As a sentence of `--check` ends.
  void expect_refused(const std::string& store, const std::string& words) const {
    EXPECT_THAT([&] { load(store); }, ThrowsMessage<yaml::Error>(EndsWith(words))) << store;
  }

 private:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name) << text;
  }

  const test::TemporaryFolder folder_{"weir-manager"};
};

constexpr const char* kFiles = ", certificate: c.pem, key: k.pem, authority: a.pem";

TEST_F(StoreOfConfig, IsSqliteOrEtcd) {
  EXPECT_EQ(load("sqlite: /f.db").sqlite, "/f.db");
  EXPECT_FALSE(load("sqlite: /f.db").etcd);
  const Config plain = load("etcd: [\"http://127.0.0.1:2379\", \"http://[::1]:2379\"]");
  EXPECT_THAT(plain.etcd.value().servers,
              ElementsAre("http://127.0.0.1:2379", "http://[::1]:2379"));
  const Config secure = load(std::string("etcd: [\"https://a.example:2379\"]") + kFiles);
  EXPECT_EQ(secure.etcd.value().certificate, "c.pem");
  EXPECT_EQ(secure.etcd->key, "k.pem");
  EXPECT_EQ(secure.etcd->authority, "a.pem");
}

TEST_F(StoreOfConfig, ListensAtNumbers) {
  for (const char* const right : {"192.0.2.10:9470", "[2001:db8::1]:9470", "unix:/m"}) {
    EXPECT_NO_THROW(listen(right)) << right;
  }
  for (const char* const wrong : {"localhost:9470", "manager.example:9470", "9470", "192.0.2.10"}) {
    EXPECT_THAT([&] { listen(wrong); },
                ThrowsMessage<yaml::Error>(
                    EndsWith(std::string("listen: found \"") + wrong +
                             "\"; allowed: ADDRESS:PORT in "
                             "numbers, such as 192.0.2.10:9470 or [2001:db8::1]:9470")))
        << wrong;
  }
}

TEST_F(StoreOfConfig, IsRefusedWithWhatWouldBeRight) {
  expect_refused("sqlite: f, etcd: [\"http://127.0.0.1:1\"]",
                 "store: found both sqlite and etcd; allowed: one of them");
  expect_refused("sqlite: f, key: k.pem",
                 "store.key: found a file without etcd; allowed: it beside etcd alone");
  expect_refused("etcd: [\"http://192.0.2.1:1\"]",
                 "found \"http://192.0.2.1:1\"; allowed: http:// on loopback alone, for a "
                 "laboratory; https:// elsewhere");
  expect_refused("etcd: [\"http://127.0.0.1:1\"], authority: a.pem",
                 "store.authority: found a file for http://; allowed: it beside https:// alone");
  expect_refused("etcd: [\"https://a:1\"], certificate: c.pem, key: k.pem",
                 "store.authority: found nothing: the key is missing; allowed: a PEM file, for "
                 "https://");
  constexpr const char* one_kind = "; allowed: https://ADDRESS:PORT of each member, or all of them "
                                   "http://ADDRESS:PORT on loopback";
  for (const std::string url : {"a:1", "https://a", "https://:1", "https://a:1/x", "https://a:"}) {
    expect_refused("etcd: [\"" + url + "\"]" + kFiles, "found \"" + url + "\"" + one_kind);
  }
  expect_refused(std::string("etcd: [\"https://a:1\", \"http://127.0.0.1:1\"]") + kFiles,
                 std::string("found \"http://127.0.0.1:1\"") + one_kind);
  EXPECT_THAT([&] { load("etcd: [\"http://127.0.0.1:1\"]", "a/b"); },
              ThrowsMessage<yaml::Error>(EndsWith(
                  "fabric: found \"a/b\"; allowed: a name without '/', which parts etcd's keys")));
  EXPECT_THAT([&] { load("sqlite: f", "lab", "\nname: mgr 1"); },
              ThrowsMessage<yaml::Error>(
                  EndsWith("name: found \"mgr 1\"; allowed: a name without blanks")));
}

TEST_F(StoreOfConfig, NamesSchedulersWhoAreNobodyElse) {
  const std::string others = "\noperators: [ann]\ntenants: [{ name: red }]";
  const Config config = load("sqlite: f", "lab", others + "\nschedulers: [slurmctld]");
  EXPECT_THAT(config.schedulers, ElementsAre("slurmctld"));

  struct Other {
    std::string name;
    std::string words;
  };

  for (const Other& other :
       {Other{"ann", ", who is under operators"}, Other{"red", ", who is under tenants"},
        Other{"host1", ", which is a host"}}) {
    EXPECT_THAT([&] { load("sqlite: f", "lab", others + "\nschedulers: [" + other.name + "]"); },
                ThrowsMessage<yaml::Error>(
                    EndsWith("schedulers: found \"" + other.name + "\"" + other.words +
                             "; allowed: common names that nobody else has")));
  }
}

} // namespace
} // namespace weir::manager::manager_config_test
