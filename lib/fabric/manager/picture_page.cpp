// SPDX-License-Identifier: BSD-3-Clause
#include "manager/picture_page.hpp"

#include "manager/picture_svg.hpp"
#include "manager/picture_text.hpp"

#include <fmt/format.h>

#include <string_view>

namespace weir::manager {
namespace {

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Weir: the fabric</title>
<style>
body { font-family: sans-serif; margin: 1em; color: #222; }
.picture { overflow-x: auto; } svg { max-width: 100%; min-width: 22em; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .2em .6em; border-bottom: 1px solid #ddd; }
.lost { background: #f6d5d0; padding: .5em; }
</style></head><body>
)";

} // namespace

std::string page_of(const v1::FabricPicture& picture) {
  std::string page =
      fmt::format("{}<h1>{}</h1>\n<p>led by {}, term {}</p>\n", kHead, escaped(picture.fabric()),
                  escaped(picture.manager()), escaped(picture.term()));
  if (picture.store_is_lost()) {
    page += "<p class=\"lost\">The manager's store does not answer: this is from its memory.</p>\n";
  }
  page += fmt::format("<div class=\"picture\">{}</div>\n<table><tr><th>job</th><th>name</th>"
                      "<th>state</th><th>hosts</th><th>waits for</th></tr>\n",
                      svg_of(picture, SvgUse::file));
  for (const v1::Job& job : picture.jobs()) {
    page += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                        job.id(), escaped(job.name()), escaped(job.state()), job.hosts_size(),
                        escaped(fmt::format("{}", fmt::join(job.waits_for(), ", "))));
  }
  return page + "</table></body></html>\n";
}

} // namespace weir::manager
