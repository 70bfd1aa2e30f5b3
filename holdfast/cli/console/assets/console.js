"use strict";
/* The console: state of a cluster as it is sent, or as it is in this file. Every text is set as text, never as HTML. */
(() => {
  const SHOWN_EVENTS = 200, MOST_EVENTS = 4000, LATE_MS = 15000;
  const own = document.getElementById("data");
  const still = own ? JSON.parse(own.textContent) : null;
  const now = { meta: null, groups: [], jobs: [], incidents: { total: 0, open: 0, rows: [] }, events: [], total: 0 };
  const chosen = { node: "", job: "", shown: SHOWN_EVENTS };
  let heard = 0, connected = false, over = false;

  const $ = (id) => document.getElementById(id);
  function make(tag, values, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(values ?? {})) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (name in made && name !== "list") made[name] = value;
      else made.setAttribute(name, value);
    }
    made.append(...children.filter((one) => one !== "" && one !== null && one !== undefined));
    return made;
  }
  const text = (tag, kind, content) => make(tag, { className: kind, textContent: content });
  const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
  const whole = (value) => (value === null ? "–" : Math.round(value).toLocaleString("en"));
  const percent = (value) => (value === null ? "–" : `${(100 * value).toFixed(value > 0.9995 || value < 0.1 ? 2 : 1)} %`);
  const per = (value) => (value === null ? "–" : value >= 100 ? whole(value) : `${+value.toPrecision(3)}`);
  const loss = (value) => (value === null ? "–" : value.toPrecision(4));
  const utc = (ms) => new Date(ms).toISOString();
  const clock = (ms) => (utc(ms).slice(0, 10) === utc(Date.now()).slice(0, 10) && !still ? utc(ms).slice(11, 19) : utc(ms).slice(5, 19).replace("T", " "));
  function span(ms) {
    const s = Math.max(0, ms / 1000);
    if (s < 10) return `${s.toFixed(1)} s`;
    if (s < 120) return `${Math.round(s)} s`;
    if (s < 7200) return `${Math.round(s / 60)} min`;
    return s < 172800 ? `${(s / 3600).toFixed(1)} h` : `${(s / 86400).toFixed(1)} d`;
  }

  /* Replace children, and leave alone what did not change: a focus, a selection or an open part stays. */
  const written = new WeakMap();
  function show(place, key, build) {
    const kept = JSON.stringify(key);
    if (written.get(place) === kept) return;
    written.set(place, kept);
    const focused = place.contains(document.activeElement) ? document.activeElement.dataset.key : "";
    place.replaceChildren(...[build()].flat());
    if (focused) [...place.querySelectorAll("[data-key]")].find((one) => one.dataset.key === focused)?.focus({ preventScroll: true });
  }

  function showMeta() {
    const meta = now.meta;
    document.title = `${meta.cluster || "holdfast"} · ${now.incidents.open ? `${now.incidents.open} open · ` : ""}holdfast console`;
    $("cluster").textContent = meta.cluster || meta.title || "";
    $("status").textContent = meta.gone ? "gone" : meta.status;
    $("status").className = `pill t-${meta.gone || meta.status === "Failed" ? "bad" : meta.status === "InService" ? "good" : "changing"}`;
    $("where").textContent = [meta.orchestrator, meta.cloud, meta.region].filter(Boolean).join(" · ");
    const banner = $("banner"), reading = meta.history;
    let words = "", info = false;
    if (meta.gone) words = `${meta.gone[0].toUpperCase()}${meta.gone.slice(1)} at ${clock(meta.gone_ms)} UTC. This page shows what was seen last.`;
    else if (over) words = "The console has ended. This page shows what was seen last. To go on: holdfast console";
    else if (meta.problem) words = `No answer${meta.read ? ` since ${clock(meta.read)} UTC` : ""}: ${meta.problem}`;
    else if (meta.message) words = meta.message;
    else if (reading) { info = true; words = `Reading the event log since ${meta.since}: ${count(reading[0], "event")}${reading[1] ? `, up to ${clock(reading[1])} UTC` : ""}. Until then the last minutes are shown.`; }
    else if (meta.note) { info = true; words = `${meta.note}.`; }
    banner.hidden = !words; banner.textContent = words; banner.className = info ? "info" : "";
    $("foot").textContent = still
      ? `Written ${utc(meta.made).slice(0, 16).replace("T", " ")} UTC by Holdfast ${meta.version}, from ${count(meta.events, "event")} alone. Values that no event has are shown as –. ${meta.notes.join(" ")}`
      : `Holdfast ${meta.version} · read-only · ${count(meta.events, "event")} since ${meta.since} · times are UTC`;
    showLive();
  }

  function showLive() {
    const live = $("live"), meta = now.meta;
    if (still) { live.className = "live still"; live.textContent = ""; return; }
    const late = Date.now() - heard > LATE_MS;
    const bad = over || !connected || (meta && (meta.gone || meta.problem));
    live.className = `live${bad ? " off" : late ? " late" : ""}`;
    const word = over || meta?.gone ? "ended" : !connected ? "connecting" : meta?.problem ? "no answer" : late ? `silent for ${span(Date.now() - heard)}` : "live";
    if (live.textContent !== word) live.textContent = word;
  }

  function showTiles() {
    const nodes = now.groups.flatMap((group) => group.nodes), good = nodes.filter((node) => node.level === "good" || node.level === "warn").length;
    const going = now.jobs.filter((job) => ["running", "recovering", "silent"].includes(job.state));
    const job = now.jobs.find((one) => one.id === chosen.job), open = now.incidents.open;
    const spares = nodes.filter((node) => node.role === "spare").length;
    const tile = (value, words, level) => make("div", { className: "tile" }, text("b", level ? `t-${level}` : "", value), text("span", "", words));
    const tiles = [];
    if (!still) tiles.push([`${good} of ${nodes.length}`, `nodes in service${spares ? `, ${count(spares, "spare")}` : ""}`, nodes.length && good < nodes.length ? "bad" : ""]);
    if (!still) tiles.push([`${going.length}`, going.length === 1 ? "job runs" : "jobs run", going.some((one) => one.level === "bad") ? "bad" : ""]);
    if (!still || now.incidents.total) tiles.push([`${open}`, `open of ${count(now.incidents.total, "incident")}`, open ? "bad" : ""]);
    if (job) tiles.push([percent(job.goodput), `goodput of job ${job.id}`, ""], [whole(job.step), `steps${job.steps ? ` of ${whole(job.steps)}` : ""}, job ${job.id}`, ""], [loss(job.loss), `loss of job ${job.id}`, ""]);
    show($("tiles"), tiles, () => tiles.map((one) => tile(...one)));
  }

  function showNodes() {
    show($("groups"), [now.groups, chosen.node, now.meta.gone], () => {
      if (!now.groups.length) return text("p", "empty", now.meta.cluster ? "The cluster has no instance groups." : "Nodes appear when AWS answers.");
      return now.groups.map((group) => {
        const good = group.nodes.filter((node) => node.level === "good" || node.level === "warn").length;
        const head = make("h3", {}, `${group.name} `, text("span", "dim", `${group.type} · ${good} of ${Math.max(group.target, group.nodes.length)} in service`));
        const cells = group.nodes.map((node) => make("button", {
          type: "button", className: `node l-${node.level}${node.role ? ` r-${node.role}` : ""}`, title: `${node.host}: ${nodeWords(node)}`,
          "aria-pressed": String(node.id === chosen.node), "aria-label": `${node.host}: ${nodeWords(node)}`, "data-key": `node ${node.id}`,
          onclick: () => { chosen.node = chosen.node === node.id ? "" : node.id; showNodes(); },
        }, text("b", "", node.host), text("span", "", nodeWords(node))));
        const place = make("div", { className: `group-nodes${group.nodes.length > 40 ? " dense" : ""}` }, ...cells);
        const keys = group.nodes.length > 40 ? make("p", { className: "keys" }, ...["ranks", "spare", "idle", "changing", "fault"].map((name) => text("span", `key k-${name}-node`, name))) : "";
        return make("div", { className: "group" }, head, keys, cells.length ? place : text("p", "empty", "no instances"));
      });
    });
    const node = now.groups.flatMap((group) => group.nodes).find((one) => one.id === chosen.node);
    $("node-detail").hidden = !node;
    if (node) show($("node-detail"), node, () => facts([
      ["instance", `${node.id}  ${node.type}`], ["HyperPod", node.status + (node.message ? `: ${node.message}` : "")],
      ["job", node.job ? `${node.job}, ${node.ranks}` : "none"],
      ["incident", node.incident ? `${node.fault}, ${node.state} (${node.incident})` : ""],
      ...node.detectors.map((one) => ["detector lost", one]),
      ["shell", `holdfast ssh ${node.host}`],
    ]));
  }
  function nodeWords(node) {
    if (node.fault) return `${node.fault}, ${node.state}`;
    if (node.status !== "Running") return node.status;
    if (node.detectors.length) return "detector lost";
    if (node.role) return `${node.ranks}${node.role === "ranks" ? ` · job ${node.job}` : ` of job ${node.job}`}`;
    return "in service";
  }
  const facts = (rows) => make("dl", {}, ...rows.filter(([, value]) => value).flatMap(([name, value]) => [text("dt", "", name), text("dd", "", value)]));

  function showJobs() {
    $("jobs").hidden = Boolean(still) && !now.jobs.length;
    if (!now.jobs.some((job) => job.id === chosen.job)) chosen.job = now.jobs[0]?.id ?? "";
    const columns = ["job", "state", "step", "steps/s", "loss", "goodput", "nodes", "faults", "redone", "began", "took"];
    const ends = (job) => job.ended ?? (still ? still.meta.latest : Math.max(job.seen, now.meta.read ?? 0));
    show($("job-list"), [now.jobs, chosen.job, now.meta.jobs_left_out, Math.floor(Date.now() / 10000)], () => {
      if (!now.jobs.length) return text("p", "empty", "No job has reported a step in this time. To start one: holdfast submit train.sbatch");
      const rows = now.jobs.map((job) => {
        const state = make("td", { className: "left", "data-is": "state" }, text("span", `pill t-${job.level || "dim"}`, job.state), job.note ? text("span", "dim", ` ${job.note}`) : "");
        const values = [
          `${whole(job.step)}${job.steps ? ` of ${whole(job.steps)}` : ""}`, job.rate === null ? "" : per(job.rate), job.loss === null ? "" : loss(job.loss), percent(job.goodput),
          job.nodes ? `${job.nodes}${job.spares ? ` + ${count(job.spares, "spare")}` : ""}` : "", job.faults ? `${job.faults}` : "", job.redone ? whole(job.redone) : "", job.started ? clock(job.started) : "", job.started ? span(ends(job) - job.started) : "",
        ];
        return make("tr", { tabIndex: 0, "aria-selected": String(job.id === chosen.job), "data-key": `job ${job.id}`, onclick: () => choose(job.id), onkeydown: (event) => { if (event.key === "Enter") choose(job.id); } },
          make("td", { textContent: job.id, "data-is": "job" }), state, ...values.map((value, at) => make("td", { textContent: value, "data-is": columns[at + 2] })));
      });
      const head = make("tr", {}, ...columns.map((name, at) => make("th", { textContent: name, scope: "col", className: at < 2 ? "left" : "" })));
      const older = now.meta.jobs_left_out ? text("p", "dim", `${count(now.meta.jobs_left_out, "older job")}: holdfast jobs`) : "";
      return [make("table", { className: "table" }, make("thead", {}, head), make("tbody", {}, ...rows)), older];
    });
    const job = now.jobs.find((one) => one.id === chosen.job);
    $("job").hidden = !job || !job.started;
    if (job && job.started) showJob(job);
  }
  function choose(id) { chosen.job = id; series.of = ""; showJobs(); showTiles(); }

  const series = { of: "", seen: 0, data: null, asked: 0 };
  let plots = null;
  function showJob(job) {
    const left = job.steps && job.rate ? (job.steps - job.step) / job.rate * 1000 : null;
    const parts = [["step", `${whole(job.step)}${job.steps ? ` of ${whole(job.steps)}` : ""}`], ["checkpoint at step", job.checkpoint === null ? "none" : whole(job.checkpoint)],
      ["ranks", whole(job.world_size)], ["restarts", whole(Math.max(0, job.attempts - 1))], ["steps redone", whole(job.redone)], left === null ? null : ["ends in about", span(left)]].filter(Boolean);
    show($("job-facts"), [job.id, parts], () => [text("b", "", `Job ${job.id}`), ...parts.map(([name, value]) => make("span", {}, `${name} `, text("em", "", String(value))))]);
    const seen = `${job.seen} ${job.state === "running" || job.ended ? "" : Math.floor((now.meta.read ?? 0) / 3000)}`;
    if (series.of === job.id && series.seen === seen && series.data) { draw(job); return; }
    series.of = job.id; series.seen = seen;
    if (still) { series.data = still.series[job.id] ?? null; draw(job); return; }
    const asked = (series.asked += 1);
    fetch(`series?job=${encodeURIComponent(job.id)}`).then((answer) => (answer.ok ? answer.json() : null)).then((data) => {
      if (asked === series.asked && data) { series.data = data; draw(job); }
    }, () => { series.seen = 0; });
  }
  function draw(job) {
    if (!series.data) return;
    const read = (id, format) => (point) => { $(id).textContent = point && point[1] !== null && point[1] !== undefined ? `${format(point[1])} at ${clock(point[0])}` : ""; };
    plots ??= {
      rate: Plots.overTime($("plot-rate"), { height: 130, sync: "job", name: "rate", stroke: "accent", stepped: true, min: 0, format: Plots.short, read: read("read-rate", per) }),
      loss: Plots.overTime($("plot-loss"), { height: 130, sync: "job", name: "loss", stroke: "loss", format: Plots.short, read: read("read-loss", loss) }),
      goodput: Plots.overTime($("plot-goodput"), { height: 130, sync: "job", name: "goodput", stroke: "goodput", min: 0, max: 1, format: (value) => `${Math.round(100 * value)} %`, read: read("read-goodput", percent) }),
    };
    const { t } = series.data, mine = now.incidents.rows.filter((one) => one.job === job.id), end = t[t.length - 1];
    const stopped = job.state === "recovering" ? mine[mine.length - 1] : null;
    const bands = mine.flatMap((one) => [
      ...(one.resumed ? [[one.stopped_s === null ? one.start : one.resumed - 1000 * one.stopped_s, one.resumed, "stop", 0.4]] : []),
      ...(one === stopped ? [[one.start, end, "stop", 0.4]] : []),
      ...(one.resumed ? [[one.resumed, one.strong ?? one.restored ?? (one.open ? end : one.resumed), "weak", 0.22]] : []),
    ]);
    const marks = mine.map((one) => one.start);
    for (const name of ["rate", "loss", "goodput"]) plots[name].show(t, series.data[name], bands, marks);
    $("job-keys").hidden = !mine.length;
  }

  /* A bar begins with the fault; its length grows with the logarithm, so that seconds and hours fit one axis. */
  const TICKS = [[1, "1 s"], [10, "10 s"], [60, "1 min"], [600, "10 min"], [3600, "1 h"], [36000, "10 h"], [360000, "100 h"]];
  function showIncidents() {
    const { rows, total } = now.incidents, list = $("incident-list");
    $("incidents").hidden = Boolean(still) && still.meta.of === "job" && !rows.length;
    const open = new Set([...list.querySelectorAll("details[open]")].map((one) => one.dataset.id));
    const time = now.meta.gone_ms ?? now.meta.read ?? now.meta.latest ?? 0, going = rows.some((one) => one.open) ? Math.floor(time / 2000) : 0;
    $("incident-keys").hidden = !rows.length;
    show(list, [now.incidents, going], () => {
      if (!rows.length) return text("p", "empty", "No incidents in this time.");
      const until = (one) => Math.max(one.open ? time : one.end ?? one.start, one.strong ?? 0, one.start);
      const longest = Math.max(20, ...rows.map((one) => (until(one) - one.start) / 1000)) * 1.15;
      const at = (seconds) => (100 * Math.log1p(seconds / 0.5)) / Math.log1p(longest / 0.5);
      const scale = make("div", { className: "scale" }, ...TICKS.filter(([seconds]) => at(seconds) < 97).map(([seconds, words]) => {
        const tick = text("span", "", words); tick.style.left = `${at(seconds)}%`; return tick;
      }));
      const made = rows.slice().reverse().map((one) => incident(one, at, until(one), open.has(one.id) || (still && rows.length === 1)));
      const older = total > rows.length ? text("p", "dim", `The newest ${rows.length} of ${count(total, "incident")}; all: holdfast incidents`) : "";
      return [make("div", { className: "scale-row", "aria-hidden": "true" }, make("span"), text("span", "dim", "time from the first sign"), scale), ...made, older];
    });
  }
  function incident(one, at, until, open) {
    const bar = make("div", { className: "bars", role: "img", "aria-label": [one.resumed_after && `resumed after ${one.resumed_after}`, one.strong_after && `full strength after ${one.strong_after}`].filter(Boolean).join(", ") || one.state });
    let from = one.start;
    const part = (kind, to) => {
      if (to === null || to <= from) return;
      const piece = text("i", `b-${kind}`, ""), left = at((from - one.start) / 1000);
      piece.style.left = `${left}%`; piece.style.width = `${at((to - one.start) / 1000) - left}%`;
      bar.append(piece); from = to;
    };
    part("seen", one.noticed); part("stop", one.resumed); part("weak", one.strong ?? one.restored); part(one.open ? "open" : "rest", until);
    if (one.strong !== null) { const end = text("i", "b-strong", ""); end.style.left = `${at((one.strong - one.start) / 1000)}%`; bar.append(end); }
    const took = [one.resumed_after ? `training again after ${one.resumed_after}` : "", one.strong_after ? `full strength after ${one.strong_after}` : ""].filter(Boolean);
    const head = make("summary", { "data-key": `incident ${one.id}` },
      make("span", { className: "what" }, text("b", "", one.fault), text("span", `pill t-${one.level}`, one.state), text("span", "dim", `${one.host} · ${clock(one.start)} UTC`)),
      make("span", { className: "took" }, took[0] ?? (one.open ? `open for ${span(until - one.start)}` : ""), took[1] ? text("span", "dim", took[1]) : one.job && !took.length ? text("span", "dim", `job ${one.job}`) : ""),
      make("span", { className: "bars-place" }, bar));
    const steps = make("ol", {}, ...one.steps.map(([after, what]) => make("li", {}, text("span", "", after), text("span", "", what))));
    const more = one.evidence_total - one.evidence.length;
    const lines = make("ol", { className: "lines mono" }, ...one.evidence.map(([after, source, line]) => make("li", {}, text("span", "", after), text("span", "", source), text("span", "", line))));
    const body = make("div", { className: "body" }, make("div", {}, text("h3", "", "Facts"), facts([["id", one.id], ...one.facts])), make("div", {}, text("h3", "", "Steps"), steps),
      make("div", { className: "all" }, text("h3", "", "Evidence"), one.evidence.length ? lines : text("p", "dim", "none"), more > 0 ? text("p", "dim", `${count(more, "more line")}: holdfast incidents ${one.id}`) : ""));
    return make("details", { className: "incident", open, "data-id": one.id }, head, body);
  }

  function showEvents() {
    $("events").hidden = Boolean(still) && !now.events.length;
    const find = $("find").value.trim().toLowerCase(), kind = $("kind").value, source = $("source").value, job = $("of-job").value, reports = $("reports").checked || kind !== "";
    const match = ([, , from, node, what, of, words, level]) => (reports || level !== "report") && (!kind || what === kind) && (!source || from === source) && (!job || of === job) &&
      (!find || `${what} ${node} ${hosts.get(node) ?? ""} ${words} ${from}`.toLowerCase().includes(find));
    const found = now.events.filter(match), shown = found.slice(0, chosen.shown);
    show($("event-list"), [shown.map((row) => [row[0], row[1]]), hosts.size], () => shown.map(([, time, from, node, what, of, words, level]) => make("div", { className: `event ${level}`, role: "row" },
      make("time", { textContent: clock(time), dateTime: utc(time), title: utc(time) }), text("span", "dim source", from), text("span", "node-name", hosts.get(node) ?? node), text("b", "", what), text("span", "of dim", of ? `job ${of}` : ""), text("span", "text", words))));
    const line = ["holdfast events", kind && `--kind ${kind}`, job && `--job ${job}`].filter(Boolean).join(" ");
    const rest = found.length > shown.length ? make("button", { type: "button", textContent: `Show ${Math.min(SHOWN_EVENTS, found.length - shown.length)} more`, onclick: () => { chosen.shown += SHOWN_EVENTS; showEvents(); } }) : "";
    show($("event-note"), [found.length, shown.length, now.total, line], () => [rest, `${rest ? " " : ""}${found.length ? count(found.length, "event") : "No event matches"} of the newest ${now.events.length.toLocaleString("en")}${now.total > now.events.length ? `; the log has ${now.total.toLocaleString("en")}, all of them: ` : ". All of them: "}`, text("code", "", line)].filter(Boolean));
  }
  const hosts = new Map();
  function learnHosts() { for (const group of now.groups) for (const node of group.nodes) hosts.set(node.id, node.host); for (const one of now.incidents.rows) if (one.node && one.host) hosts.set(one.node, one.host); }
  function fill(select, values) {
    const kept = select.value, known = [...select.options].slice(1).map((one) => one.value), wanted = [...values].sort();
    if (known.join("\n") === wanted.join("\n")) return;
    select.replaceChildren(select.options[0], ...wanted.map((value) => make("option", { value, textContent: value })));
    select.value = wanted.includes(kept) ? kept : "";
  }
  function takeEvents({ again, total, rows }) {
    now.events = [...rows.slice().reverse(), ...(again ? [] : now.events)].sort((one, other) => other[1] - one[1]).slice(0, MOST_EVENTS);
    now.total = total;
    for (const row of rows) if (row[3] && row[8]) hosts.set(row[3], row[8]);
    fill($("kind"), new Set(now.events.map((row) => row[4]))); fill($("source"), new Set(now.events.map((row) => row[2]))); fill($("of-job"), new Set(now.events.map((row) => row[5]).filter(Boolean)));
  }

  const ORDER = [showMeta, showJobs, showNodes, showIncidents, showEvents, showTiles];
  const parts = { groups: [showNodes, showTiles, showEvents], jobs: [showJobs, showTiles], incidents: [showIncidents, showJobs, showTiles, showEvents], meta: [showIncidents], events: [showEvents] };
  const due = new Set();
  function take(name, value) {
    if (name === "events") takeEvents(value); else now[name] = value;
    if (name === "groups" || name === "incidents") learnHosts();
    if (!due.size && !still) requestAnimationFrame(refresh);
    for (const part of [showMeta, ...parts[name]]) due.add(part);
  }
  function refresh() {
    if (now.meta) for (const part of ORDER) if (due.has(part)) part();
    due.clear();
  }

  function listen() {
    const stream = new EventSource("stream");
    stream.addEventListener("open", () => { connected = true; heard = Date.now(); showLive(); });
    stream.addEventListener("error", () => { connected = false; if (now.meta) showMeta(); else showLive(); });
    for (const name of Object.keys(parts)) stream.addEventListener(name, (message) => {
      heard = Date.now(); connected = true; take(name, JSON.parse(message.data));
      if (name === "meta" && now.meta.gone) stream.close();
    });
    stream.addEventListener("ended", () => { over = true; stream.close(); if (now.meta) showMeta(); });
    setInterval(showLive, 1000);
  }

  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = ["INPUT", "SELECT"].includes(document.activeElement?.tagName);
    if (event.key === "Escape" && typing) { $("find").value = ""; document.activeElement.blur(); showEvents(); return; }
    if (typing || $("help").open) return;
    const place = { 1: "nodes", 2: "jobs", 3: "incidents", 4: "events" }[event.key];
    if (place) { $(place).scrollIntoView(); $(place).focus({ preventScroll: true }); event.preventDefault(); }
    if (event.key === "/") { $("find").focus(); event.preventDefault(); }
    if (event.key === "?") $("help").showModal();
    if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
  }
  function step(by) {
    const here = document.activeElement?.closest("section") ?? $(still ? "incidents" : "nodes"), items = [...here.querySelectorAll("[data-key]")];
    const at = items.indexOf(document.activeElement);
    items[Math.min(items.length - 1, Math.max(0, at < 0 ? 0 : at + by))]?.focus();
  }

  document.addEventListener("keydown", keys);
  $("help-open").addEventListener("click", () => $("help").showModal());
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("filters").addEventListener("input", () => { chosen.shown = SHOWN_EVENTS; showEvents(); });
  $("nodes").hidden = Boolean(still);
  if (still) { chosen.job = still.meta.job ?? ""; for (const name of ["meta", "groups", "jobs", "incidents", "events"]) if (name in still) take(name, still[name]); refresh(); } else { showLive(); listen(); }
})();
