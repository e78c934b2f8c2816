// SPDX-License-Identifier: BSD-3-Clause
#include "manager/picture_page.hpp"
#include "manager/picture_svg.hpp"

namespace weir::manager {
namespace {

constexpr std::string_view kStyle = R"css(:root { color-scheme: light dark }
* { box-sizing: border-box }
body { margin: 0; padding: .8rem; font: 16px/1.4 system-ui, sans-serif; color: #1a2230; background: #f3f5f8 }
main { display: grid; gap: .8rem; grid-template-columns: minmax(0, 1fr) }
header { display: flex; flex-wrap: wrap; gap: .1rem .8rem; align-items: baseline }
h1, h2, p { margin: 0; overflow-wrap: anywhere }
h1 { font-size: 1.5rem }
h2, caption { font-size: 1.15rem; font-weight: 650; text-align: left }
header p, .tenant, th[scope=col], .note { color: #4d5869 }
header p, th[scope=col] { font-size: .85rem }
section { background: #ffffff; border: 1px solid #d5dbe3; border-radius: .6rem; padding: .7rem .8rem }
section.well { border-left: .4rem solid #006b57 }
section.trouble, #lost { border-left: .4rem solid #b3261e; background: #fde8e6 }
.trouble h2, li.trouble { color: #8c1d18; font-weight: 650 }
ul { margin: .3rem 0 0; padding-left: 1.2rem }
li { overflow-wrap: anywhere }
.picture { overflow-x: auto; text-align: center }
.picture svg { min-width: 100%; height: auto; max-height: 76vh }
table { border-collapse: collapse; width: 100%; table-layout: fixed }
th, td { text-align: left; vertical-align: top; padding: .35rem .5rem .35rem 0; overflow-wrap: anywhere; font-weight: 400 }
tbody tr { border-top: 1px solid #d5dbe3 }
.jobs th:first-child { width: 4.6rem; font-weight: 650 }
.jobs th:nth-child(3) { width: 7rem }
.jobs th:last-child { width: 3rem }
.called { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden }
.jobs td:last-child { font-variant-numeric: tabular-nums }
.swatch { width: 28px; height: 6px; margin-right: .4rem; vertical-align: middle }
.tenant { display: block; font-size: .85rem }
.lists { display: grid; gap: .8rem; grid-template-columns: minmax(0, 1fr); align-content: start }
details { padding: 0 .2rem }
summary { cursor: pointer }
#lost { position: sticky; top: 0; z-index: 1; margin-bottom: .8rem; padding: .7rem .8rem; border-radius: .6rem; color: #8c1d18; font-weight: 650 }
#lost + main { opacity: .55 }
#lost[hidden] + main { opacity: 1 }
@media (min-width: 1000px) {
  body { padding: 1.2rem 1.6rem }
  main { grid-template-columns: minmax(0, 2.2fr) minmax(20rem, 1fr); grid-template-rows: auto auto 1fr }
  header { grid-column: 1 / -1 }
  .picture { grid-column: 1; grid-row: 2 / 4; align-self: start }
  section.well, section.trouble { grid-column: 2 }
  .lists { grid-column: 2 }
}
@media (prefers-color-scheme: dark) {
  body { color: #e7ecf3; background: #0a0f15 }
  section { background: #10161e; border-color: #2a3442 }
  header p, .tenant, th[scope=col], .note { color: #aab6c6 }
  tbody tr { border-color: #2a3442 }
  section.well { border-left-color: #57d6ae }
  section.trouble, #lost { background: #2e1214; border-left-color: #ff8a80 }
  .trouble h2, li.trouble, #lost { color: #ffb4ab }
}
)css";

constexpr std::string_view kScript = R"js('use strict';
(() => {
  const periodMs = 2000;
  const patienceMs = 5000;
  const lost = document.getElementById('lost');

  async function nextPage() {
    const patience = new AbortController();
    const timer = setTimeout(() => patience.abort(), patienceMs);
    try {
      const answer = await fetch(location.href, { cache: 'no-store', signal: patience.signal });
      if (!answer.ok) {
        throw new Error(answer.statusText);
      }
      return new DOMParser().parseFromString(await answer.text(), 'text/html');
    } finally {
      clearTimeout(timer);
    }
  }

  // What the reader has opened, and how far he has moved the picture, stay.
  function show(page) {
    const before = document.getElementById('fabric');
    const next = document.adoptNode(page.getElementById('fabric'));
    const { scrollLeft } = document.getElementById('picture');
    next.querySelector('#links').open = document.getElementById('links').open;
    before.replaceWith(next);
    document.getElementById('picture').scrollLeft = scrollLeft;
    document.title = page.title;
    lost.hidden = true;
  }

  function tellOfLoss() {
    const { textContent } = document.querySelector('#fabric time');
    lost.textContent = `The manager does not answer. This is how it was at ${textContent}.`;
    lost.hidden = false;
    document.title = `? ${document.title.replace(/^\S+ /, '')}`;
  }

  async function goOn() {
    try {
      show(await nextPage());
    } catch {
      tellOfLoss();
    }
    setTimeout(goOn, periodMs);
  }

  setTimeout(goOn, periodMs);
})();
)js";

constexpr std::string_view kHeader =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cache-Control: no-store\r\n";

} // namespace

std::string_view page_header() {
  return kHeader;
}

std::string_view page_script() {
  return kScript;
}

std::string page_style() {
  return std::string(kStyle) + std::string(picture_style());
}

} // namespace weir::manager
