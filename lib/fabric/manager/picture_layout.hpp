// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>
#include <weir/v1/fabric.pb.h>

namespace weir::manager {

struct Point {
  double x = 0;
  double y = 0;
};

struct Area {
  Point centre;
  double width = 0;
  double height = 0;

  double top() const { return centre.y - height / 2; }

  double bottom() const { return centre.y + height / 2; }

  double left() const { return centre.x - width / 2; }
};

/// A link's ends, the lower first.
struct Ends {
  Point low;
  Point high;
  bool is_level = false; // its switches stand side by side: it goes in an arc above them
};

/// Where all of a fabric is drawn, in pixels. A leaf has its hosts below it, one under another, so
/// the drawing is as wide as there are leaves, and small ones can be read on a phone.
class Layout {
 public:
  explicit Layout(const v1::FabricPicture& picture);

  double width() const { return width_; }

  double height() const { return height_; }

  /// nullptr: the picture has no such host or switch.
  const Area* host(const std::string& name) const;
  const Area* switch_named(const std::string& name) const;

  /// Hosts that are a mark without their name, because there are many and they are well.
  bool is_cell(const std::string& host) const { return cells_.contains(host); }

  /// By the picture's links.
  const std::vector<Ends>& links() const { return links_; }

 private:
  void place_leaves(const v1::FabricPicture& picture);
  void place_hosts(const v1::FabricPicture& picture);
  double place_cells(const std::vector<std::string>& hosts, const Area& leaf, double y);
  double place_rows(const std::vector<std::string>& hosts, const Area& leaf, double y);
  void place_uppers(const v1::FabricPicture& picture);
  void place_level(const v1::FabricPicture& picture, std::uint32_t level);
  void place_links(const v1::FabricPicture& picture);
  double row_of(std::uint32_t level) const;

  std::map<std::string, Area> hosts_;
  std::map<std::string, Area> switches_;
  std::map<std::string, std::vector<std::string>> hosts_of_; // by switch
  std::set<std::string> marked_;                             // hosts of which there is more to say
  std::set<std::string> cells_;
  std::vector<Ends> links_;
  std::uint32_t top_ = 0; // level
  double level_height_ = 0;
  double width_ = 0;
  double height_ = 0;
};

} // namespace weir::manager
