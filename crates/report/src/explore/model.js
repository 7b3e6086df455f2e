"use strict";
// What the page knows: sizes, what is asked of the module, what is chosen, and words. Nothing here touches the document, so a
// test can run it anywhere.
function explorer(data, engine) {
  const names = Object.fromEntries(data.layout);
  const KIB = 1024;
  const MILLISECONDS = { ms: 1, s: 1000, us: 0.001 };
  const MEGABITS = { bit: 1e-6, kbit: 1e-3, mbit: 1, gbit: 1000, tbit: 1e6 };
  const BYTES = { b: 1, kib: KIB, mib: KIB * KIB, kb: 1000, mb: 1e6 };
  const ARMS = ["baseline", "against"];
  const LIMITS = { rtt: [0, 10000], rate: [0.01, 100000], initcwnd: [1, 500], data: [0, 4 * KIB * KIB] };

  // ---- the module

  // In the order of the module's names. A list has its name as often as it can have numbers.
  const numbers = (names, values) => names.map((name, at) => {
    const value = values[name];
    return (Array.isArray(value) ? value[at - names.indexOf(name)] : value) || 0;
  });
  function ask(what, network, arms, sweep) {
    const question = [what, ...numbers(names.network, network)];
    for (const arm of [arms[0], arms[1] || arms[0]]) question.push(...numbers(names.arm, arm));
    question.push(...numbers(names.sweep, sweep || {}));
    const place = engine.question(question.length);
    new Float64Array(engine.memory.buffer, place, question.length).set(question);
    const length = engine.ask();
    return new Float64Array(engine.memory.buffer, engine.answer(), length).slice();
  }
  function rows(answer, begin, fields, count) {
    const found = [];
    for (let row = 0; row < count; row++) {
      const one = {};
      fields.forEach((field, at) => { one[field] = answer[begin + row * fields.length + at]; });
      found.push(one);
    }
    return found;
  }
  const network = state => ({
    rtt: state.rtt, rate: state.rate, initcwnd: state.initcwnd, mss: data.mss, payload: state.data, request: data.request,
    tickets: data.site.tickets, response: data.site.response,
  });
  // How the response leaves has its records behind its bytes; 0 where they are as usual.
  const recordSize = data.site.response[1] || 0;
  // Of a response that is larger, the first byte comes no later.
  const most = 2 * data.mss + recordSize;
  function connection(state, arm) {
    const answer = ask(1, network(state), [messages(arm)]);
    const [found] = rows(answer, 0, names.connection, 1);
    const { flights, packets } = found;
    const flightsAt = names.connection.length, packetsAt = flightsAt + flights * names.flight.length;
    found.flights = rows(answer, flightsAt, names.flight, flights);
    found.packets = rows(answer, packetsAt, names.packet, packets);
    found.begins = state.data > 0 ? found.first : found.handshake;
    // Of a longer response over QUIC, the last byte is no arithmetic.
    found.ends = Math.max(found.last, found.begins);
    found.packet = overQuic(arm) ? "datagram" : "segment";
    return found;
  }
  function staircase(state, arm, to, steps) {
    const answer = ask(2, network(state), [messages(arm)], { from: 8, to, steps });
    return rows(answer, 0, names.step, answer.length / names.step.length);
  }
  function difference(state, from, to, steps) {
    const answer = ask(3, network(state), state.arms.map(messages), { from, to, steps });
    return rows(answer, 0, names.difference, answer.length / names.difference.length);
  }

  // ---- sizes

  const { sizes } = data;
  const group = name => sizes.groups.find(known => known.name === name);
  const chain = name => sizes.chains.find(known => known.name === name);
  const way = key => sizes.ways.findIndex(known => known.key === key);
  const comesSo = (arm, key = arm.way) => {
    const own = chain(arm.chain).ways[way(key)];
    if (!own || overQuic(arm) && (!data.quic || sizes.ways[way(key)].tcp)) return undefined;
    const [hello, extensions, certificate, most, serverHello] = own;
    return { hello, extensions, certificate, most, serverHello };
  };
  const TRANSPORTS = ["", "/transport=quic"];
  const overQuic = arm => arm.transport !== "";
  const natural = arm => comesSo(arm).certificate;
  const certificate = arm => arm.bytes || natural(arm);
  // The messages of an arm, as the module wants them.
  function messages(arm) {
    const hellos = group(arm.group), own = comesSo(arm);
    return {
      transport: TRANSPORTS.indexOf(arm.transport),
      client_hello: hellos.client_hello + own.hello,
      server_hello: hellos.server_hello + own.serverHello,
      encrypted_extensions: own.extensions,
      certificate: certificate(arm),
      certificate_verify: chain(arm.chain).certificate_verify,
      server_finished: sizes.server_finished,
      client_finish: sizes.client_finish,
      hello_retry_request: sizes.hello_retry_request,
      second_client_hello: hellos.second_client_hello && hellos.second_client_hello + own.hello,
      server_writes: chain(arm.chain).writes || [],
    };
  }
  // What of the server's handshake is which message, from which byte to which.
  function parts(view) {
    let begin = 0;
    const ends = { ServerHello: "helloEnds", EncryptedExtensions: "extensionsEnd", Certificate: "certificateEnds",
      CertificateVerify: "verifyEnds", Finished: "finishedEnds" };
    return Object.entries(ends).map(([name, end]) => {
      const part = { name, begin, end: view[end], kind: name === "Certificate" ? "chain" : "other" };
      begin = part.end;
      return part;
    });
  }
  // An arm in the words of `lastbyte compare`.
  function label(arm) {
    const padded = arm.bytes ? `:${arm.bytes}B` : "";
    return `${arm.group}/${arm.chain}${padded}${arm.way}${arm.transport}`;
  }
  // Such words without what goes without saying.
  const terse = text => text.replace(/\/intermediates=1(?=\/|$)/g, "");
  // The arm of such words; undefined for what the page does not offer.
  function arm(text) {
    const [name, rest] = cut(terse(text), "/");
    if (!group(name)) return undefined;
    const [named, ...options] = rest.split("/");
    const strokes = options.map(option => "/" + option);
    const transport = strokes.find(option => TRANSPORTS.includes(option)) || "";
    const key = strokes.filter(option => option !== transport).join("");
    let found = chain(named), bytes = null;
    if (!found) {
      const [before, size] = cut(named, ":", true);
      found = chain(before);
      bytes = /^[0-9]{1,6}B$/.test(size) ? parseInt(size, 10) : NaN;
    }
    if (!found || Number.isNaN(bytes) || way(key) < 0) return undefined;
    return fitted({ group: name, chain: found.name, way: key, bytes, transport });
  }
  // The nearest arm that there is: not every chain comes in every way, and not every size can be.
  function fitted({ group, chain, way, bytes, transport }) {
    const found = { group, chain, way, bytes: null, transport };
    if (!comesSo(found)) found.way = "";
    if (!comesSo(found)) found.transport = "";
    const { most, certificate } = comesSo(found);
    if (bytes && bytes > certificate && most > certificate) found.bytes = Math.min(bytes, most);
    return found;
  }
  function cut(text, separator, last) {
    const at = last ? text.lastIndexOf(separator) : text.indexOf(separator);
    return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + separator.length)];
  }

  // ---- what is chosen, as the address has it

  function quantity(text, units, [least, most]) {
    const match = /^([0-9]{1,9}(?:\.[0-9]{1,9})?)([a-z]*)$/i.exec(text);
    const unit = match && units[match[2].toLowerCase()];
    if (!unit) return undefined;
    const number = Number((Number(match[1]) * unit).toPrecision(12));
    return number >= least && number <= most ? number : undefined;
  }
  const started = () => ({
    rtt: data.start.rtt, rate: data.start.rate, initcwnd: data.start.initcwnd, data: data.start.data,
    arms: [arm(data.start.baseline), arm(data.start.against)],
  });
  // Whatever an address says, there is something to be seen: what is not understood is as at the start, and noted in `misread`.
  function parse(fragment, misread = []) {
    const state = started();
    for (const part of fragment.replace(/^#/, "").slice(0, 1000).split("&").filter(part => part)) {
      let [key, value] = cut(part, "=");
      try { value = decodeURIComponent(value); } catch { misread.push([part, key]); continue; }
      let found;
      switch (key) {
        case "rtt": found = quantity(value, MILLISECONDS, LIMITS.rtt); break;
        case "rate": found = value === "unlimited" ? 0 : quantity(value, MEGABITS, LIMITS.rate); break;
        case "initcwnd": found = /^[0-9]{1,3}$/.test(value) ? quantity(value, { "": 1 }, LIMITS.initcwnd) : undefined; break;
        case "data": found = quantity(value, BYTES, LIMITS.data); found = found && Math.round(found); break;
        case "baseline": case "against":
          found = arm(value);
          if (found) state.arms[ARMS.indexOf(key)] = found;
          if (!found || label(found) !== terse(value)) misread.push([`${key}=${value}`, key]);
          continue;
      }
      if (found !== undefined) state[key] = found; else misread.push([`${key}=${value}`, key]);
    }
    return state;
  }
  // What of an address is not understood, and what is shown in its place, in a line; empty where all of it is.
  function misread(fragment) {
    const wrong = [], state = parse(fragment, wrong);
    if (!wrong.length) return "";
    const [[said, key]] = wrong, more = wrong.length - 1;
    const shown = new Map([...options(state), ...ARMS.map((key, index) => [key, label(state.arms[index])])]).get(key);
    const instead = more ? "what this page begins with is shown instead" : shown ? `${key}=${shown} is shown instead` : "all else is shown";
    return `The address says ${Array.from(said).slice(0, 60).join("")}${more ? ` and ${counted(more, "other part")}` : ""}, ` +
      `which this page does not understand: ${instead}.`;
  }
  // Without what is left of a division.
  const even = number => Number(number.toPrecision(12));
  const rateOption = mbit => mbit === 0 ? "unlimited" : mbit >= 1000 ? `${even(mbit / 1000)}gbit` : mbit < 1 ? `${even(mbit * 1000)}kbit` : `${mbit}mbit`;
  const dataOption = bytes => bytes % KIB === 0 ? `${bytes / KIB}KiB` : `${bytes}B`;
  const options = state => [
    ["rtt", `${state.rtt}ms`], ["rate", rateOption(state.rate)], ["initcwnd", `${state.initcwnd}`], ["data", dataOption(state.data)],
  ];
  function fragment(state) {
    const [baseline, against] = state.arms.map(label);
    const pairs = [["baseline", baseline], ["against", against], ...options(state)];
    return pairs.map(([key, value]) => `${key}=${value.replaceAll(" ", "%20")}`).join("&");
  }
  // What measures just that.
  // A way that one stack alone has is measured with that on both sides of the comparison, as stacks differ by more.
  const stack = state => state.arms.map(arm => sizes.ways[way(arm.way)].stack).find(Boolean) || "";
  // The arm of `lastbyte compare` that has as many bytes, and does besides what the site's server does.
  function measured(arm) {
    const { key_share } = group(arm.group), own = chain(arm.chain).measured;
    const named = own ? `${arm.group}/${own}` : label(arm);
    return named + data.site.words + (key_share ? `/key_share=${key_share}` : "");
  }
  function command(state) {
    const [baseline, against] = state.arms.map(arm => measured(arm) + stack(state));
    const mtu = data.mtu ? [["mtu", `${data.mtu}`]] : [];
    // What is drawn has large buffers: of Linux's own, a shorter response does not come as the beginning of a longer one does.
    const hosts = state.arms.every(overQuic) ? [] : [["buffers", "large"], ...data.site.hosts];
    const network = [...options(state), ...mtu, ...hosts].map(([key, value]) => `--${key} ${value}`).join(" ");
    // One and the same is compared with nothing.
    const question = baseline === against ? `explain ${baseline}` : `compare --baseline ${baseline} --against ${against}`;
    // Arms have what they say here, as in a study.
    return `lastbyte ${question} --chain-profile private ${network}`;
  }

  // ---- words

  const bytes = number => String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const counted = (number, one) => `${number === 1 ? "one" : number} ${one}${number === 1 ? "" : "s"}`;
  function time(ms, size = Math.abs(ms)) {
    if (Math.abs(ms) >= 10000) return `${(ms / 1000).toFixed(1)}\u00a0s`;
    return `${ms.toFixed(size < 0.095 ? 3 : size < 9.95 ? 2 : size < 995 ? 1 : 0)}\u00a0ms`;
  }
  const size = number => number >= KIB && number % KIB === 0 ? `${number / KIB}\u00a0KiB` : `${bytes(number)}\u00a0bytes`;
  const brief = number => Number(number.toPrecision(4));
  const rate = mbit => mbit === 0 ? "no limit" : mbit >= 1000 ? `${brief(mbit / 1000)}\u00a0Gbit/s` : mbit < 1 ? `${brief(mbit * 1000)}\u00a0kbit/s` : `${brief(mbit)}\u00a0Mbit/s`;
  // What tells two arms apart, no longer than it needs to be.
  function short(arms) {
    const [one, other] = arms;
    const same = key => one[key] === other[key];
    // But for what carries it.
    if (!same("transport") && label({ ...one, transport: "" }) === label({ ...other, transport: "" })) {
      return arms.map(arm => `${arm.chain}${arm.way}${overQuic(arm) ? " over QUIC" : " over TCP"}`);
    }
    if (same("group") && label(one) !== label(other)) return arms.map(arm => label(arm).slice(arm.group.length + 1));
    return arms.map(label);
  }
  const NEAR = 0.0005;
  // What larger messages take on the link alone, in milliseconds.
  const takes = (state, more) => state.rate === 0 ? 0 : more * 8 / 1000 / state.rate;

  // The sentence: what differs, and why. `views` are both connections.
  function verdict(state, views) {
    const named = short(state.arms);
    const what = state.data > 0 ? "first byte" : "handshake";
    const verb = state.data > 0 ? "comes" : "is done";
    const delay = views[1].begins - views[0].begins;
    const [slow, fast] = delay < 0 ? [0, 1] : [1, 0];
    // As exact as tells them apart.
    const near = begins => time(begins, Math.min(begins, 10 * Math.abs(delay)));
    const times = `${near(views[slow].begins)} instead of ${near(views[fast].begins)}`;
    if (label(state.arms[0]) === label(state.arms[1])) {
      return { what: "Both connections are the same: choose another certificate for one of them.", why: "" };
    }
    if (Math.abs(delay) < NEAR) {
      return {
        what: `Nobody waits longer: with ${named[0]} and with ${named[1]}, the ${what} ${verb} after ${time(views[0].begins)}.`,
        why: (either(views) ? both(state, views, named) : fits(state, views)) + last(state, views, named, delay) + limit(state, views),
      };
    }
    return {
      what: `With ${named[slow]} the ${what} ${verb} ${time(Math.abs(delay))} later than with ${named[fast]}: ${times}.`,
      why: (either(views) ? both(state, views, named) : because(state, views, named, slow, fast)) + last(state, views, named, delay) + limit(state, views),
    };
  }
  // Whether one of them is over QUIC: then what each waits for is said of each.
  const either = views => views.some(view => view.connect < 0);
  function both(state, views, named) {
    const each = views.map((view, index) => {
      const waits = view.held === 2 ? `three times what the client has sent may leave before the server knows its address: ${view.atOnce} of ${view.segments} datagrams`
        : view.held === 1 ? `the server's window lets ${view.connect < 0 ? view.atOnce : state.initcwnd} of ${view.segments} ${view.packet}s leave` : "";
      const flights = `${view.connect < 0 ? "" : "a round trip for TCP, and "}${counted(view.serverFlights, "flight")} of the server`;
      return `${named[index]}: ${flights}${waits ? `, as ${waits}` : `, ${counted(view.segments, view.packet)}`}.`;
    });
    return each.join(" ");
  }
  function because(state, views, named, slow, fast) {
    const [late, soon] = [views[slow], views[fast]];
    const more = late.sent - soon.sent;
    const hello = messages(state.arms[slow]).client_hello - messages(state.arms[fast]).client_hello;
    const serial = takes(state, Math.max(0, more)) + takes(state, Math.max(0, hello));
    const delay = late.begins - soon.begins;
    const flights = late.serverFlights - soon.serverFlights;
    const idle = Math.max(0, delay - serial);
    const rounds = state.rtt > 0 && idle > state.rtt * 0.75 ? Math.round(idle / state.rtt) : 0;
    const waits = record(state, late, soon);
    if (waits) return waits;
    const arm = state.arms[slow];
    // Chains of the page's own have that where their words say nothing; a site's has what it has.
    const shape = arm.way === "" && !chain(arm.chain).measured ? ", with one intermediate," : "";
    const handshake = `Its handshake${shape} has ${counted(late.segments, "segment")} (${bytes(late.sent)} bytes), and the server's window lets ${state.initcwnd} leave`;
    if (flights > 0 && rounds > 0) {
      return `${handshake}; the rest waits for an acknowledgement. That is ${counted(rounds, "round trip")} more` +
        (late.window > 0 ? `, and a window of ${late.window} would spare ${rounds === 1 ? "it" : "one"}.` : ".");
    }
    if (flights > 0 && state.rtt > 0 && idle > state.rtt / 10) {
      return `${handshake}; the rest waits for an acknowledgement. As packets are on the link meanwhile, that is ${time(idle)} of the round trip; ` +
        `the other ${time(serial)} are what more bytes take at ${rate(state.rate)}.`;
    }
    if (flights > 0) {
      return `${handshake}. But at ${rate(state.rate)} the first acknowledgements are back before those have left, so hardly anything waits: ` +
        `what takes time is ${bytes(more)} bytes more on the link.`;
    }
    if (more > 0 || hello > 0) return `${fits(state, views)} The difference is the time that ${bytes(Math.max(0, more) + Math.max(0, hello))} bytes more take on the link.`;
    return fits(state, views);
  }
  // Where the first byte waits for a record of several segments, and the window that the handshake left decides when that is there.
  function record(state, late, soon) {
    const shift = late.first - soon.first - (late.handshake - soon.handshake);
    if (recordSize <= data.mss || state.data === 0 || late.opened === soon.opened || Math.abs(shift) < Math.max(NEAR, state.rtt / 10)) return "";
    const [small, large] = late.opened < soon.opened ? [late, soon] : [soon, late];
    const apart = Math.abs(late.handshake - soon.handshake);
    const handshake = apart < NEAR ? "Both handshakes are done at the same time" : `The handshakes are done ${time(apart)} apart`;
    return `${handshake}. But the first byte waits for all of the first record, ${bytes(Math.min(recordSize, state.data))} bytes, and the larger handshake ` +
      `had opened the server's window to ${large.opened} segments, not ${small.opened}: after it, the record takes ${time(Math.abs(shift))} less.`;
  }
  function fits(state, views) {
    const [one, other] = views.map(view => view.serverFlights);
    const waits = state.data > 0 && record(state, views[1], views[0]);
    if (waits) return waits;
    if (one !== other) return `One needs ${counted(one, "flight")}, the other ${other}, and none of that is waited for.`;
    const retries = sizes.hello_retry_request > 0;
    if (one > (retries ? 2 : 1)) return `Both handshakes need ${one} flights of the server.`;
    const hello = retries ? ", behind the HelloRetryRequest" : "";
    const larger = views[0].sent > views[1].sent ? views[0] : views[1];
    const left = larger.budget - larger.sent;
    return `Both handshakes fit the server's first window of ${counted(state.initcwnd, "segment")}${hello}` + (left > 0 ? `, with ${bytes(left)} bytes left.` : ".");
  }
  function last(state, views, named, first) {
    if (state.data === 0 || views.some(view => view.last < 0)) return "";
    const delay = views[1].last - views[0].last;
    const [slow, fast] = delay < 0 ? [0, 1] : [1, 0];
    const response = `the last of ${size(state.data)}`;
    const [slower, faster] = [views[slow], views[fast]];
    if (Math.abs(delay) < NEAR) return ` And ${response} comes at the same time with both.`;
    const opened = `its handshake had opened the server's window to ${faster.opened} segments, not ${slower.opened}, so that the response needs ` +
      `${counted(faster.responseFlights, "flight")}, not ${slower.responseFlights}`;
    const gained = faster.opened > slower.opened && faster.responseFlights < slower.responseFlights;
    const turned = first * delay < 0 && Math.abs(first) >= NEAR && Math.abs(delay) > Math.min(Math.abs(first), 0.05);
    if (gained && (turned || Math.abs(first) < NEAR)) return ` But ${response} comes ${time(Math.abs(delay))} sooner with ${named[fast]}: ${opened}.`;
    if (gained) return ` For ${response} it is ${time(Math.abs(delay))}: with ${named[fast]}, ${opened}.`;
    if (turned) return ` But ${response} comes ${time(Math.abs(delay))} sooner with ${named[fast]}.`;
    if (slower.opened > faster.opened && Math.abs(delay) < Math.abs(first) / 2 && slower.responseFlights < faster.responseFlights) {
      return ` By ${response} only ${time(Math.abs(delay))} of that is left: the larger handshake had opened the server's window to ${slower.opened} ` +
        `segments, not ${faster.opened}, so that the response needs ${counted(slower.responseFlights, "flight")}, not ${faster.responseFlights}.`;
    }
    // The other way, by however little.
    if (first * delay < 0) return ` But ${response} comes ${time(Math.abs(delay))} sooner with ${named[fast]}.`;
    return ` For ${response} it is ${time(Math.abs(delay))}.`;
  }
  // Where the arithmetic of a connection ends before its last byte, and why; empty where it does not.
  function limit(state, views) {
    const named = short(state.arms);
    const ends = views.map((view, index) => [view.until, data.reasons[view.reason], named[index]]).filter(([, reason]) => reason);
    const [[until, reason, name] = []] = ends;
    if (!ends.length) return "";
    const whose = ends.length < views.length ? ` with ${name}` : "";
    return ` Later than ${time(until)}, times${whose} are not by arithmetic, only near: ${reason}. Measure it.`;
  }
  // How far a handshake is from the next step.
  function left(state, arm, view) {
    const own = certificate(arm);
    if (view.below >= 0) {
      const window = view.window > 0 ? `, or a window of ${view.window}` : "";
      return `${bytes(own - view.below)} bytes less of Certificate would save a flight${window}`;
    }
    if (view.above >= 0) return `${bytes(view.above - own)} bytes left for the Certificate`;
    return "no chain of any size needs a flight more";
  }

  return {
    started, parse, misread, most, fragment, command, stack, connection, staircase, difference, messages, parts, label, arm, fitted, comesSo, natural, certificate,
    overQuic, TRANSPORTS, verdict, left, short, bytes, counted, time, size, rate, rateOption, dataOption, sizes, scales: data.scales, KIB,
  };
}
