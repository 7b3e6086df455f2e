// The page: controls, figures, and one redraw for all of it. What it knows is the model's.
(async function () {
  const $ = id => document.getElementById(id);
  const data = JSON.parse($("known").textContent);
  let engine;
  try {
    const packed = Uint8Array.from(atob($("engine").textContent), letter => letter.charCodeAt(0));
    const module = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
    engine = (await WebAssembly.instantiate(module)).instance.exports;
  } catch {
    $("verdict").textContent = "This browser runs no WebAssembly, in which this page calculates, or can't unpack it (DecompressionStream).";
    return;
  }
  const model = explorer(data, engine);
  const { bytes, time, size } = model;
  let state;
  // What of the address is not understood is said until something else is chosen.
  function read(address) {
    state = model.parse(address);
    misread(model.misread(address));
  }
  function misread(words) {
    $("misread").hidden = !words;
    $("misread").textContent = words;
  }
  read(location.hash);

  // ---- drawing: texts of SVG

  const safe = text => String(text).replace(/[&<>"]/g, letter => `&#${letter.charCodeAt(0)};`);
  const at = number => Math.round(number * 10) / 10;
  const line = (x1, y1, x2, y2, names) => `<path class="${names}" d="M${at(x1)} ${at(y1)}L${at(x2)} ${at(y2)}"/>`;
  const box = (x, y, width, height, names, title) => `<rect class="${names}" x="${at(x)}" y="${at(y)}" width="${at(Math.max(0, width))}" height="${at(height)}">` +
    (title ? `<title>${safe(title)}</title>` : "") + "</rect>";
  const write = (x, y, words, names = "") => `<text class="${names}" x="${at(x)}" y="${at(y)}">${safe(words)}</text>`;
  const svg = (width, height, words, inside) =>
    `<svg role="img" aria-label="${safe(words)}" width="${width}" height="${Math.round(height)}" viewBox="0 0 ${width} ${Math.round(height)}">${inside}</svg>`;
  // A text's width, near enough to keep texts apart.
  const wide = (words, letter = 6.7) => words.length * letter;
  // Round numbers from 0 on, at most so many.
  function ticks(most, count) {
    const rough = most / count, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(factor => factor * power).find(step => step >= rough);
    const found = [];
    for (let tick = 0; tick <= most * 1.0001; tick += step) found.push(tick);
    return found;
  }
  const marks = ["base", "c0"];
  // Steps along points, without what lies on a straight line anyway.
  function along(points) {
    let path = "", before;
    points.forEach(([x, y], index) => {
      const next = points[index + 1];
      const flat = before !== undefined && next && Math.abs(before - y) < 0.05 && Math.abs(next[1] - y) < 0.05;
      if (!flat) path += `${path ? "L" : "M"}${at(x)} ${at(y)}`;
      before = y;
    });
    return path;
  }

  // ---- figures

  function budget(width, views) {
    const names = model.short(state.arms);
    // Segments that are not full leave less of a window for some chains.
    const same = views[0].budget === views[1].budget;
    const most = Math.max(views[0].sent, views[1].sent, views[0].budget * 1.04, views[1].budget * 1.04);
    const x = number => number / most * (width - 1), high = 30;
    const words = views.map(view => view.sent > view.budget ? `${bytes(view.sent - view.budget)} bytes wait` : `${bytes(view.budget - view.sent)} bytes left`);
    const ends = views.map(view => Math.min(width, Math.max(x(view.sent), x(view.budget))));
    // Beside the name, or below the bar.
    const below = views.some((view, index) => wide(names[index], 7.6) + wide(words[index]) + 12 > ends[index]);
    const row = below ? 94 : 78;
    let inside = "", said = [];
    views.forEach((view, index) => {
      const top = 28 + index * row, edge = view.budget;
      inside += write(0, top + 12, names[index], `name`);
      for (const { name, begin, end, kind } of model.parts(view)) {
        const title = `${name}: ${bytes(end - begin)} bytes${view.connect < 0 ? "" : " on the wire"}`;
        const fits = Math.min(end, edge);
        if (begin < edge) inside += box(x(begin), top + 20, x(fits) - x(begin), high, kind, title);
        if (end > edge) inside += box(x(Math.max(begin, edge)), top + 20, x(end) - x(Math.max(begin, edge)), high, "beyond", title);
        const long = `${name} ${bytes(end - begin)}`;
        const room = x(Math.min(end, begin < edge ? edge : end)) - x(begin);
        const label = room > wide(long) + 10 ? long : room > wide(name) + 10 ? name : "";
        if (label) inside += write(x(begin) + 6, top + 40, label, begin < edge ? kind === "chain" ? "on" : "" : "cost");
      }
      inside += line(x(edge), top + (index && same ? -6 : 16), x(edge), top + 54, "edge");
      const room = ends[index] > wide(words[index]);
      inside += write(room ? ends[index] : 0, top + (below ? 68 : 12), words[index], `${room ? "end" : ""} halo ${view.sent > edge ? "cost" : "mut"}`);
      said.push(`${names[index]}: ${bytes(view.sent)} bytes, ${words[index]}`);
    });
    const edge = views[0].budget;
    inside += line(x(edge), 17, x(edge), 24, "edge");
    const quic = views.some(view => view.connect < 0);
    const window = quic ? "first flight" : `${state.initcwnd === 1 ? "1 segment" : `${state.initcwnd} segments`}${same ? `: ${bytes(edge)} bytes` : ""}`;
    const near = x(edge) + 4 > width - wide(window);
    inside += write(near ? Math.min(width, x(edge) + 4) : x(edge), 12, window, near ? "end" : x(edge) > wide(window) / 2 ? "middle" : "");
    return svg(width, 28 + 2 * row - 24, `First ${quic ? "flight" : `window ${window}`}. ${said.join(". ")}.`, inside);
  }

  // Packets that leave together are drawn side by side.
  function apart(packets, y) {
    const placed = [];
    let index = 0;
    while (index < packets.length) {
      let next = index + 1;
      while (next < packets.length && y(packets[next].sent) - y(packets[next - 1].sent) < 2) next++;
      const count = next - index, first = y(packets[index].sent), whole = y(packets[next - 1].sent) - first;
      const gap = Math.max(whole / Math.max(1, count - 1), Math.min(2.2, 23 / count));
      for (let packet = index; packet < next; packet++) {
        const shift = first + (packet - index) * gap - y(packets[packet].sent);
        placed.push({ packet: packets[packet], shift, dense: gap < 1.7, burst: index });
      }
      index = next;
    }
    return placed;
  }

  function kindOf(packet, view, parts) {
    if (packet.sender === 0) return "client";
    // From ServerHello on.
    const offset = packet.offset - view.retry;
    if (offset < 0) return "other";
    if (offset >= view.sent) return "response";
    const middle = offset + packet.payload / 2;
    const part = parts.find(part => middle < part.end);
    return part ? part.kind : "response";
  }

  function packets(width, view, until, height) {
    const narrow = width < 400;
    const left = narrow ? 72 : 76, right = width - (narrow ? 90 : 108), top = 20;
    const y = ms => top + ms / until * (height - top - 36);
    const parts = model.parts(view);
    let inside = "";
    const step = state.rtt > 0 && until / state.rtt <= 24 ? state.rtt : 0;
    for (let tick = 0; step && tick <= until; tick += step) inside += line(left, y(tick), right, y(tick), "grid");
    // Where the server has more to send and may not.
    const server = view.flights.filter(flight => flight.sender === 1);
    const data = view.packets.filter(packet => packet.sender === 1 && packet.kind === 1);
    let sent = 0;
    server.slice(0, -1).forEach((flight, index) => {
      sent += flight.bytes;
      const next = server[index + 1];
      const lastPacket = data.find(packet => packet.offset + packet.payload >= sent);
      const gone = lastPacket ? Math.max(lastPacket.sent, lastPacket.arrives - state.rtt / 2) : flight.start;
      const waits = next.start - gone;
      const handshake = view.retry + view.sent;
      const inHandshake = sent > view.retry && sent < handshake, inResponse = sent > view.before;
      if ((inHandshake || inResponse) && waits > state.rtt / 8 && gone < until) {
        const [from, to] = [y(gone), y(Math.min(until, next.start))];
        inside += box(right, from, 9, to - from, "waits", `waits for ${time(waits)}`);
        if (to - from > 34) inside += write(right + 14, (from + to) / 2 + 5, "waits", "cost");
      }
    });
    const lines = new Map();
    const draw = (names, path) => lines.set(names, (lines.get(names) || "") + path);
    for (const sender of [0, 1]) {
      const [from, to] = sender === 0 ? [left, right] : [right, left];
      // What the client acknowledges at last, nobody waits for.
      const own = view.packets.filter(packet => packet.sender === sender && packet.arrives <= view.ends && packet.sent <= until);
      let before;
      for (const placed of apart(own, y)) {
        const { packet, shift, dense, burst } = placed;
        const y1 = y(packet.sent) + shift, y2 = y(packet.arrives) + shift;
        const kind = packet.kind === 1 ? kindOf(packet, view, parts) : "thin";
        if (dense && packet.kind === 1 && before && before.burst === burst && before.kind === kind) {
          draw(`${kind} area`, `M${from} ${at(before.y1)}L${to} ${at(before.y2)}L${to} ${at(y2)}L${from} ${at(y1)}Z`);
        } else if (!dense || packet.kind === 1) {
          draw(`${kind} packet`, `M${from} ${at(y1)}L${to} ${at(y2)}`);
        } else if (!before || before.burst !== burst || y1 - before.y1 > 2) {
          draw(`${kind} packet`, `M${from} ${at(y1)}L${to} ${at(y2)}`);
        } else continue;
        before = { kind, y1, y2, burst };
      }
    }
    const order = ["thin packet", "client packet", "client area", "response area", "response packet", "other area", "other packet", "chain area", "chain packet"];
    const clip = `shown-${width}-${height}`;
    inside += `<clipPath id="${clip}"><rect x="0" y="0" width="${width}" height="${height - 8}"/></clipPath><g clip-path="url(#${clip})">`;
    for (const names of order) if (lines.has(names)) inside += `<path class="${names}" d="${lines.get(names)}"/>`;
    inside += "</g>";
    inside += line(left, top, left, height - 12, "side") + line(right, top, right, height - 12, "side");
    inside += write(left, 12, "client", "middle mut") + write(right, 12, "server", "middle mut");
    // What each flight is.
    let low = top, end = 0;
    for (const flight of server) {
      end += flight.bytes;
      const place = Math.max(y(flight.start) + 4, low);
      if (place > y(flight.start) + 16 || flight.start > until) continue;
      const what = end <= view.retry ? "asks again" : end <= view.retry + view.sent ? "" : end <= view.before ? "tickets" : "response";
      const words = what ? `${what}, ${flight.segments}` : model.counted(flight.segments, view.packet).replace("one", "1");
      inside += write(right + 14, place, words, narrow ? "small" : "");
      low = place + 14;
    }
    // When what is there, at the client.
    let next = top - 8;
    const milestones = [["TCP", view.connect], ["handshake", view.handshake], ["first byte", view.first]].filter(([, ms]) => ms >= 0);
    if (view.first >= 0 && view.last >= 0) milestones.push(["last byte", view.last]);
    for (const [name, ms] of milestones) {
      const place = Math.max(y(Math.min(ms, until)) + 4, next + 14);
      if (ms <= until) inside += `<circle class="milestone" cx="${left}" cy="${at(y(ms))}" r="3.2"/>`;
      inside += write(left - 8, place, ms <= until ? name : `↓ ${name}`, "end") + write(left - 8, place + 13, time(ms), "end mut small");
      next = place + 14;
    }
    const bottom = Math.max(height, next + 8);
    const said = milestones.map(([name, ms]) => `${name} after ${time(ms)}`).join(", ");
    return svg(width, bottom, `${view.packets.length} packets: ${said}.`, inside);
  }

  function frame(width, height, left, x, y, xs, ys, [xTitle, yTitle]) {
    let inside = "";
    for (const [tick, words] of ys) inside += line(left, y(tick), width, y(tick), tick === 0 ? "zero" : "grid") + write(left - 6, y(tick) + 4, words, "end mut");
    for (const [tick, words] of xs) inside += line(x(tick), height - 40, x(tick), height - 35, "zero") + write(x(tick), height - 22, words, "middle mut");
    return inside + write(0, 11, yTitle, "mut") + write(width, height - 4, xTitle, "end mut");
  }

  function stairs(width, views, both, to) {
    const height = width < 500 ? 260 : 320, left = 54, top = 26, bottom = height - 40;
    const all = both.flat();
    const most = Math.max(...all.map(step => step.first)) * 1.06;
    const x = number => left + number / to * (width - left - 6), y = ms => bottom - ms / most * (bottom - top);
    const xs = ticks(to, width < 500 ? 4 : 8).map(tick => [tick, tick === 0 ? "0" : `${tick / 1000}`]);
    const ys = ticks(most, 5).map(tick => [tick, tick < 10 ? `${Number(tick.toPrecision(6))}` : bytes(tick)]);
    const what = state.data > 0 ? "First byte" : "Handshake";
    let inside = frame(width, height, left, x, y, xs, ys, ["Certificate message, kB", `${what}, ms`]);
    const said = [];
    both.forEach((steps, index) => {
      const points = steps.map(step => [x(step.certificate), y(step.first)]);
      inside += `<path class="line ${marks[index]} s${index === 0 ? 1 : 0}" d="${along(points)}"/>`;
    });
    views.forEach((view, index) => {
      const own = model.certificate(state.arms[index]);
      const [cx, cy] = [x(own), y(view.begins)];
      // How far it is to the step, along the step.
      const target = view.below >= 0 ? view.below : view.above;
      if (target >= 0 && target <= to) {
        const far = x(target), away = target > own;
        const words = away ? `${bytes(target - own)} left` : `${bytes(own - target)} too many`;
        const below = index === 0 ? 16 : -9;
        inside += line(cx, cy, far, cy, `distance ${marks[index]}`) + line(far, cy - 5, far, cy + 5, `distance ${marks[index]}`);
        const middle = Math.min(width - wide(words) / 2, Math.max(left + wide(words) / 2 + 4, (cx + far) / 2));
        inside += write(middle, cy + below, words, `middle halo ${away ? "" : "cost"}`);
      }
      inside += index === 0 ? `<circle class="mark fill base" cx="${at(cx)}" cy="${at(cy)}" r="6"/>` : box(cx - 6, cy - 6, 12, 12, "mark fill c0");
      said.push(`${model.label(state.arms[index])}: ${bytes(own)} bytes, ${time(view.begins)}`);
    });
    return svg(width, height, `${what} against the size of the Certificate message. ${said.join("; ")}.`, inside);
  }

  function difference(width, points, from, to) {
    const height = width < 500 ? 240 : 280, left = 54, top = 26, bottom = height - 40;
    const gaps = points.map(point => point.other - point.one);
    const [least, most] = [Math.min(0, ...gaps), Math.max(0, ...gaps)];
    const span = Math.max(most - least, 0.01) * 1.12, low = least - span * 0.06;
    const x = payload => left + Math.log(Math.max(payload, from) / from) / Math.log(to / from) * (width - left - 6);
    const y = gap => bottom - (gap - low) / span * (bottom - top);
    const step = ticks(span, 5)[1];
    const ys = [];
    for (let tick = Math.ceil(low / step) * step; tick <= low + span; tick += step) {
      const round = Number(tick.toPrecision(6));
      ys.push([Math.abs(round) < step / 100 ? 0 : round, Math.abs(round) < step / 100 ? "0" : `${round > 0 ? "+" : "−"}${Math.abs(round)}`]);
    }
    const xs = [1, 4, 16, 64, 256, 1024].filter(kib => kib * model.KIB >= from && kib * model.KIB <= to).map(kib => [kib * model.KIB, `${kib}`]);
    let inside = frame(width, height, left, x, y, xs, ys, ["response, KiB", `Last byte with ${model.short(state.arms)[1]} later, ms`]);
    const path = along(points.map((point, index) => [x(point.payload), y(gaps[index])]));
    const area = `${path}L${at(x(to))} ${at(y(0))}L${at(x(from))} ${at(y(0))}Z`;
    const zero = at(y(0));
    inside += `<clipPath id="over"><rect x="0" y="0" width="${width}" height="${zero}"/></clipPath><clipPath id="under"><rect x="0" y="${zero}" width="${width}" height="${height}"/></clipPath>`;
    inside += `<path class="over" clip-path="url(#over)" d="${area}"/><path class="under" clip-path="url(#under)" d="${area}"/>`;
    inside += line(left, y(0), width, y(0), "zero") + `<path class="line c0" d="${path}"/>`;
    if (state.data > 0) {
      let here = points[0], index = 0;
      points.forEach((point, at) => { if (point.payload <= state.data) { here = point; index = at; } });
      const gap = views.last, cx = x(Math.max(from, state.data)), cy = y(gap);
      const words = `${size(state.data)}: ${gap < 0 ? "−" : "+"}${time(Math.abs(gap))}`;
      inside += line(cx, top, cx, bottom, "level") + box(cx - 6, cy - 6, 12, 12, "mark fill c0");
      const room = cx + wide(words) + 14 < width;
      inside += write(cx + (room ? 12 : -12), cy - 12 > top ? cy - 12 : cy + 22, words, room ? "halo" : "end halo");
    }
    return svg(width, height, "How much later the last byte comes with the other connection, against the size of the response.", inside);
  }

  // ---- the page

  // How far a staircase is drawn.
  const MOST = 200000;

  // The last value that was calculated, while what it depends on stays.
  function kept(calculate) {
    let key, value;
    return (now, ...rest) => {
      if (now !== key) { value = calculate(...rest); key = now; }
      return value;
    };
  }
  const connections = [0, 1].map(() => kept((state, arm) => model.connection(state, arm)));
  const staircases = [0, 1].map(() => kept((state, arm, to) => model.staircase(state, arm, to, 24)));
  const differences = kept((state, from, to) => model.difference(state, from, to, 48));
  let views = [];

  const tell = (node, words) => { if (node.textContent !== words) node.textContent = words; };
  const set = (id, words) => tell($(id), words);
  const fill = (id, markup) => { const node = $(id); if (node.lastbyte !== markup) { node.innerHTML = markup; node.lastbyte = markup; } };
  // Widths are asked for when they change: to ask at each redraw would have the browser lay the page out twice.
  const page = {};
  function measure() {
    const width = id => Math.max(260, Math.floor($(id).clientWidth));
    page.figure = width("budget");
    page.ladder = width("packets-0");
  }

  function draw() {
    due = 0;
    const { rtt, rate, initcwnd, data: payload } = state;
    const path = [rtt, rate, initcwnd].join();
    const labels = state.arms.map(model.label);
    views = state.arms.map((arm, index) => connections[index](`${path},${payload},${labels[index]}`, state, arm));
    const said = model.verdict(state, views);
    const named = [...labels, ...model.short(state.arms)].sort((one, other) => other.length - one.length);
    fill("verdict", whole(said.what, named));
    fill("because", whole(said.why, named));
    fill("budget", budget(page.figure, views));
    set("left", state.arms.map((arm, index) => `${model.short(state.arms)[index]}: ${model.left(state, arm, views[index])}.`).join(" "));
    // All of it, but for responses that would leave no room for the handshake.
    const begins = Math.max(views[0].begins, views[1].begins);
    const until = Math.min(Math.max(views[0].ends, views[1].ends) * 1.02, begins * 2.2 + 3 * rtt) || 1;
    const rounds = rtt > 0 ? until / rtt : 4;
    const height = Math.round(Math.min(760, Math.max(360, rounds * 78)));
    views.forEach((view, index) => {
      set(`name-${index}`, model.short(state.arms)[index]);
      fill(`packets-${index}`, packets(page.ladder, view, until, height));
    });
    numbers();
    const largest = Math.max(...state.arms.map(model.certificate));
    const to = Math.min(MOST, Math.max(24000, Math.ceil(largest * 1.6 / 4000) * 4000));
    const both = state.arms.map((arm, index) => staircases[index](`${path},${payload > 0},${Math.min(payload, model.most)},${labels[index]},${to}`, state, arm, to));
    fill("stairs", stairs(page.figure, views, both, to));
    set("steps", steps(both));
    const [from, end] = [model.KIB, 1024 * model.KIB];
    const points = differences(`${path},${labels.join()}`, state, from, end);
    const follows = points.length > 0 && views.every(view => view.last >= 0);
    views.last = views[1].last - views[0].last;
    fill("difference", points.length > 0 ? difference(page.figure, points, from, end) : "");
    set("sooner", points.length > 0 ? sooner(points) : "Over QUIC, what comes after the first byte is as the stack's pacer has it, which is no arithmetic: measure it.");
    set("command", model.command(state));
    set("measured", model.stack(state) ? "Measured with rustls on both sides, as it has this delivery. Its messages are some bytes smaller than OpenSSL’s, which are drawn." : "");
    const gap = views[1].begins - views[0].begins;
    const signed = ms => `${ms < 0 ? "−" : "+"}${time(Math.abs(ms))}`;
    set("brief", `${payload > 0 ? "first byte" : "handshake"} ${signed(gap)}${payload > 0 && follows ? `, last ${signed(views.last)}` : ""}`);
    later();
  }

  // Names of arms stay on one line.
  function whole(text, names) {
    let marked = safe(text);
    const [longest, ...others] = [...new Set(names)].sort((one, other) => other.length - one.length);
    for (const name of [longest, ...others.filter(other => !longest.includes(other))]) {
      marked = marked.split(safe(name)).join(`<span class="whole">${safe(name)}</span>`);
    }
    return marked;
  }

  // The table's cells stay: to make a table anew takes longer than all arithmetic.
  const ROWS = [
    ["ClientHello, packets", index => views[index].hello, bytes],
    ["Server's handshake, bytes", index => views[index].sent, bytes],
    ["… in packets", index => views[index].segments, bytes],
    ["… in flights", index => views[index].serverFlights, bytes],
    ["Handshake done", index => views[index].handshake, time],
    ["Window as the response begins, segments", index => views[index].opened, bytes],
    ["First byte", index => views[index].first, time],
    ["Flights of the response", index => state.data > 0 ? views[index].responseFlights : -1, bytes],
    ["Last byte", index => state.data > 0 ? views[index].last : -1, time],
  ];
  $("numbers").innerHTML = `<caption>The same in numbers; bytes are those on the wire, over QUIC those of messages.</caption><thead><tr><th></th><th scope="col"></th><th scope="col"></th>` +
    `<th scope="col">more</th></tr></thead><tbody>${ROWS.map(([name]) => `<tr><th scope="row">${name}</th><td></td><td></td><td></td></tr>`).join("")}</tbody>`;
  const [heads, ...cells] = [...$("numbers").rows].map(row => [...row.cells].slice(1));
  function numbers() {
    const signed = (gap, show) => Math.abs(gap) < 0.0005 ? "same" : `${gap < 0 ? "−" : "+"}${show(Math.abs(gap))}`;
    // Names break behind strokes.
    model.short(state.arms).forEach((name, index) => tell(heads[index], name.replaceAll("/", "/\u200b")));
    ROWS.forEach(([, value, show], row) => {
      const values = [0, 1].map(value);
      values.forEach((value, index) => tell(cells[row][index], value < 0 ? "none" : show(value)));
      tell(cells[row][2], values.some(value => value < 0) ? "" : signed(values[1] - values[0], show));
    });
  }

  // Where each staircase steps.
  function steps(both) {
    const names = model.short(state.arms);
    return both.map((all, index) => {
      const edges = all.filter((step, at) => all[at + 1] && all[at + 1].flights > step.flights).map(step => bytes(step.certificate));
      return edges.length ? `${names[index]} steps after ${edges.join(", ")} bytes of Certificate.` : `${names[index]} does not step here.`;
    }).join(" ");
  }

  // For which responses the other connection is the sooner one.
  function sooner(points) {
    const NEAR = 0.05;
    const below = points.filter(point => point.other - point.one < -NEAR);
    if (!below.length) return "Here, no response comes sooner with the other connection.";
    const most = below.reduce((best, point) => point.other - point.one < best.other - best.one ? point : best);
    const [first, end] = [below[0].payload, below[below.length - 1].payload];
    return `Responses come sooner with the other connection for some sizes between ${kib(first)} and ${kib(end)}: by ${time(most.one - most.other)} at most.`;
  }
  const kib = payload => `${payload < 10 * model.KIB ? (payload / model.KIB).toFixed(1) : Math.round(payload / model.KIB)}\u00a0KiB`;

  // ---- controls

  const shown = {
    rtt: value => time(value).replace(/\.0+(?=\u00a0)/, "").replace(/(\.\d*?)0+(?=\u00a0)/, "$1"),
    rate: model.rate,
    initcwnd: value => `${value} segment${value === 1 ? "" : "s"}`,
    data: value => value === 0 ? "none" : size(value),
  };
  const scale = key => {
    const values = key === "data" ? model.scales.data.map(kib => kib * model.KIB) : model.scales[key];
    // No limit is the most.
    const order = value => key === "rate" && value === 0 ? Infinity : value;
    return [...new Set([...values, state[key]])].sort((one, other) => order(one) - order(other));
  };
  function show() {
    for (const key of ["rtt", "rate", "initcwnd", "data"]) {
      const values = scale(key), slider = $(key), words = shown[key](state[key]);
      slider.max = values.length - 1;
      slider.value = values.indexOf(state[key]);
      slider.setAttribute("aria-valuetext", words);
      set(`told-${key}`, words);
    }
    state.arms.forEach((arm, index) => {
      $(`group-${index}`).value = arm.group;
      $(`chain-${index}`).value = arm.chain;
      $(`transport-${index}`).selectedIndex = model.TRANSPORTS.indexOf(arm.transport);
      $(`transport-${index}`).disabled = !model.comesSo({ ...arm, way: "", transport: model.TRANSPORTS[1] });
      const way = $(`way-${index}`);
      way.selectedIndex = model.sizes.ways.findIndex(known => known.key === arm.way);
      [...way.options].forEach((option, at) => {
        const disabled = !model.comesSo(arm, model.sizes.ways[at].key);
        if (option.disabled !== disabled) option.disabled = disabled;
      });
      const natural = model.natural(arm), own = model.certificate(arm), slider = $(`bytes-${index}`);
      slider.min = natural;
      slider.max = model.comesSo(arm).most;
      slider.step = 1;
      slider.value = own;
      slider.disabled = model.comesSo(arm).most === natural;
      const words = `${bytes(own)} bytes${own > natural ? `, ${bytes(own - natural)} of them padding` : ""}`;
      slider.setAttribute("aria-valuetext", words);
      set(`size-${index}`, words);
      set(`label-${index}`, model.label(arm));
    });
    for (const link of document.querySelectorAll("nav a")) {
      const is = link.getAttribute("href").slice(1) === model.fragment(state);
      if (is) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    }
  }

  let due = 0, saving = 0, speaking = 0;
  function redraw() {
    show();
    if (!due) due = requestAnimationFrame(draw);
  }
  function changed() {
    misread("");
    redraw();
  }
  // What may wait: browsers refuse an address that changes too often, and nobody listens to each step of a slider.
  function later() {
    clearTimeout(saving);
    saving = setTimeout(() => history.replaceState(null, "", "#" + model.fragment(state)), 250);
    clearTimeout(speaking);
    speaking = setTimeout(() => set("spoken", `${$("misread").textContent} ${$("verdict").textContent} ${$("because").textContent}`), 700);
  }
  for (const key of ["rtt", "rate", "initcwnd", "data"]) {
    $(key).addEventListener("input", () => { state[key] = scale(key)[Number($(key).value)] ?? state[key]; changed(); });
  }
  [0, 1].forEach(index => {
    const choose = part => { state.arms[index] = model.fitted({ ...state.arms[index], ...part }); changed(); };
    $(`group-${index}`).addEventListener("change", event => choose({ group: event.target.value }));
    $(`chain-${index}`).addEventListener("change", event => choose({ chain: event.target.value, bytes: null }));
    $(`transport-${index}`).addEventListener("change", event => choose({ transport: model.TRANSPORTS[event.target.selectedIndex] }));
    $(`way-${index}`).addEventListener("change", event => choose({ way: model.sizes.ways[event.target.selectedIndex].key, bytes: null }));
    const slider = $(`bytes-${index}`);
    slider.addEventListener("input", () => choose({ bytes: Number(slider.value) }));
    // A byte is much too little for a key.
    slider.addEventListener("keydown", event => {
      const by = { ArrowRight: 100, ArrowUp: 100, ArrowLeft: -100, ArrowDown: -100, PageUp: 1448, PageDown: -1448 }[event.key];
      if (!by) return;
      event.preventDefault();
      choose({ bytes: Math.max(0, model.certificate(state.arms[index]) + (event.shiftKey ? Math.sign(by) : by)) });
    });
  });
  addEventListener("hashchange", () => { read(location.hash); redraw(); });
  new ResizeObserver(() => {
    const { figure, ladder } = page;
    measure();
    if ((figure !== page.figure || ladder !== page.ladder) && !due) due = requestAnimationFrame(draw);
  }).observe(document.querySelector("main"));
  $("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText($("command").textContent);
      set("copy", "Copied");
      setTimeout(() => set("copy", "Copy"), 2000);
    } catch {
      getSelection().selectAllChildren($("command"));
    }
  });
  // For those who look inside, and for tests.
  globalThis.explored = { model, draw: () => { show(); draw(); }, set: read, state: () => state };
  measure();
  show();
  draw();
})();
