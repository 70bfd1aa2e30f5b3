"""Style of the page on screen, phone and paper. Colours are variables of another file."""

STYLE = """
:root { color-scheme: light dark; --back: #fbfbf9; --card: #fff; }
@media (prefers-color-scheme: dark) { :root:not(.paper) { --back: #15181b; --card: #1d2125; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 68rem; background: var(--back); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.05rem; margin: 0 0 .6rem; }
p { margin: .3rem 0 1rem; } .dim, figcaption { color: var(--dim); } .dim { font-size: .85rem; }
figcaption { font-size: .85rem; margin-top: .5rem; }
.grid { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
section, figure { margin: 0 0 1rem; padding: 1rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 6px; min-width: 0; }
.grid > figure { margin: 0; }
.grid + section { margin-top: 1rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
.numbers td:not(:first-child) { white-space: nowrap; }
th { font-weight: 600; color: var(--dim); } tr.chosen td { font-weight: 600; }
dl { margin: 0; display: grid; gap: .2rem 1rem; grid-template-columns: minmax(8rem, max-content) 1fr; }
dt { font-weight: 600; } dd { margin: 0; } ul { margin: 0; padding-left: 1.1rem; font-size: .9rem; }
.plot { min-height: 2rem; } .strip { display: block; width: 100%; height: 1rem; margin: 0 0 .55rem; }
.strip-head { display: flex; justify-content: space-between; gap: 1rem; font-size: .85rem; }
.strip-head :last-child { color: var(--dim); }
.key { display: inline-block; margin-right: .8rem; }
.key i { display: inline-block; width: .8em; height: .8em; margin-right: .3em; }
.key i.stroke { width: 1.4em; height: 0; vertical-align: .25em; background: none; border-width: 2px 0 0;
  border-style: solid; }
.key i.dashed { border-top-style: dashed; } .key i.dotted { border-top-style: dotted; }
.key b { margin-right: .3em; color: var(--goal); }
.warning { border-left: 4px solid var(--a-detect); padding-left: .6rem; }
@media screen and (max-width: 40rem) {
  body { padding: .7rem; } section, figure { padding: .7rem; }
  dl { grid-template-columns: 1fr; } dd { margin-bottom: .5rem; }
  thead { display: none; } table, tbody, tr { display: block; }
  tr { padding: .5rem 0; border-bottom: 1px solid var(--line); }
  td { display: flex; justify-content: space-between; gap: 1rem; padding: .1rem 0; border: 0; }
  td::before { content: attr(data-is); color: var(--dim); font-weight: 400; text-align: left; }
  td:empty { display: none; }
  td:first-child { font-weight: 600; } td:first-child::before { content: none; }
}
@media print {
  :root { --back: #fff; --card: #fff; }
  @page { margin: 14mm; }
  html { font-size: 9pt; } body { max-width: none; padding: 0; font-size: 9pt; }
  th, td { padding: .15rem .4rem; }
  section, figure { border: 0; padding: 0; } figure, tr, dd { break-inside: avoid; } h2 { break-after: avoid; }
  .grid { grid-template-columns: 1fr 1fr; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
