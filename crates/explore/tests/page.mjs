// What scripts/explore runs in Node.js: the module against native answers, the page's words, the page in Chromium.
//
//     node page.mjs bits MODULE ANSWERS       the module answers what `questions` answered, to the bit
//     node page.mjs said PAGE                 prints what the page says of some states, with commands and times
//     node page.mjs without PROBE.json NAME   prints a probe of which that was not seen
//     node page.mjs site PAGE WHAT-IF.json    a site's page says what `lastbyte probe --what-if` says
//     node page.mjs browser PAGE              keyboard, odd addresses, phones, dark, in Chromium
//     node page.mjs accessible PAGE...      names, roles and values as Chromium's accessibility tree has them; sizes for fingers
//     node page.mjs measure PAGE              how long redraws take, in Chromium
//     node page.mjs picture PAGE FILE.png     what docs/explore.png shows
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import zlib from "node:zlib";

const [what, ...rest] = process.argv.slice(2);
const fail = words => { console.error(words); process.exitCode = 1; };
const check = (is, words) => { if (!is) fail(`failed: ${words}`); };

// ---- without a browser

function engine(bytes) {
  const module = new WebAssembly.Module(bytes);
  check(WebAssembly.Module.imports(module).length === 0, "the module needs something of its host");
  return new WebAssembly.Instance(module, {}).exports;
}

function bits(modulePath, answersPath) {
  const { question, ask, answer, memory } = engine(fs.readFileSync(modulePath));
  const file = fs.readFileSync(answersPath);
  const numbers = new Float64Array(file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength));
  let at = 0, count = 0, compared = 0;
  const next = () => { const length = numbers[at]; const part = numbers.subarray(at + 1, at + 1 + length); at += 1 + length; return part; };
  while (at < numbers.length) {
    const asked = next(), expected = next();
    const place = question(asked.length);
    new Float64Array(memory.buffer, place, asked.length).set(asked);
    const length = ask();
    const found = new BigUint64Array(memory.buffer.slice(answer(), answer() + 8 * length));
    const wanted = new BigUint64Array(expected.slice().buffer);
    const differs = wanted.length === found.length ? wanted.findIndex((number, index) => number !== found[index]) : 0;
    if (differs >= 0) {
      fail(`question ${count} (${[...asked].join(" ")}): number ${differs} of ${length} differs from ${expected.length} native ones`);
      return;
    }
    compared += length;
    count++;
  }
  check(count > 0, "no question");
  console.log(`${count} questions, ${compared} numbers: native and WebAssembly agree to the bit`);
}

function modelOf(pagePath) {
  const page = fs.readFileSync(pagePath, "utf8");
  const script = id => page.match(new RegExp(`<script[^>]* ?id="${id}"[^>]*>([^<]*)</script>`))[1];
  const [, scripts] = page.match(/<script>([^]*)<\/script>/);
  const model = scripts.slice(0, scripts.indexOf("// The page: controls"));
  const data = JSON.parse(script("known"));
  const module = engine(zlib.gunzipSync(Buffer.from(script("engine"), "base64")));
  const tries = [...page.matchAll(/<a href="#([^"]*)"/g)].map(([, address]) => address.replaceAll("&amp;", "&"));
  return { model: new Function("data", "engine", `${model}; return explorer(data, engine);`)(data, module), tries };
}

// What is said where the sentence has another shape.
const STATES = [
  "rtt=0ms",
  "data=0KiB",
  "rate=unlimited",
  "baseline=X25519MLKEM768/ml-dsa-65&against=X25519MLKEM768/ml-dsa-65",
  "baseline=X25519MLKEM768/ml-dsa-65&against=x25519/ecdsa-p256",
  "against=MLKEM1024/slh-dsa-sha2-256f/intermediates=3&initcwnd=4&rtt=100ms&data=1KiB",
  "against=X25519MLKEM768/ml-dsa-44:10744B&data=0KiB",
  "against=X25519MLKEM768/ml-dsa-44:30000B&rtt=20ms&rate=20mbit&data=300KiB",
  "baseline=X25519MLKEM768/ecdsa-p256&against=X25519MLKEM768/ecdsa-p256/delivery=mtc-standalone&data=12345B&rtt=12.5ms",
  "baseline=X25519MLKEM768/ml-dsa-65&against=X25519MLKEM768/ml-dsa-65/delivery=compressed&rtt=50ms",
  "against=X25519MLKEM768/ml-dsa-65/delivery=abridged&rtt=20ms&data=0KiB",
  "baseline=X25519MLKEM768/ml-dsa-87&against=X25519MLKEM768/ml-dsa-87/delivery=pqtls-ad-raw-key&rtt=80ms&data=5KiB",
  "baseline=secp256r1/rsa-2048&against=SecP256r1MLKEM768/ml-dsa-65&initcwnd=32&rate=2.5mbit&rtt=600ms",
  "against=X25519MLKEM768/ecdsa-p256+ml-dsa-65&rate=250kbit&rtt=1ms",
  "against=X25519MLKEM768/ml-dsa-44%2Bml-dsa-65&data=10KiB",
  "against=X25519MLKEM768/ml-dsa-65/intermediates=1&data=10KiB",
  "baseline=x25519/ecdsa-p256/transport=quic&against=X25519MLKEM768/ml-dsa-65/transport=quic&rtt=100ms&data=0KiB",
  "baseline=X25519MLKEM768/ml-dsa-87&against=X25519MLKEM768/ml-dsa-87/transport=quic&rtt=100ms&data=50KiB",
  "baseline=X25519MLKEM768/ml-dsa-44/delivery=mtc-landmark/transport=quic&against=X25519MLKEM768/ml-dsa-44/transport=quic&rtt=50ms&data=1KiB&initcwnd=20",
  "against=X25519MLKEM768/ml-dsa-65/transport=quic&rtt=600ms&data=1KiB",
];

function said(pagePath) {
  const { model, tries } = modelOf(pagePath);
  const blocks = [...tries, ...STATES].map(address => {
    const state = model.parse(address);
    const views = state.arms.map(arm => model.connection(state, arm));
    const { what, why } = model.verdict(state, views);
    const left = state.arms.map((arm, index) => model.left(state, arm, views[index]));
    const times = views.map(view => [view.handshake, view.first, view.last].map(ms => Math.round(ms * 1e6)).join(" "));
    check(model.fragment(model.parse(model.fragment(state))) === model.fragment(state), `${address} is not as its address has it`);
    const lines = [`# ${address}`, what, why.trim(), ...left, `$ ${model.command(state)}`, ...times.map(ns => `ns: ${ns}`)];
    return lines.filter(line => line).join("\n").replaceAll("\u00a0", " ").replaceAll("\u202f", " ");
  });
  console.log(blocks.join("\n\n"));
}

// A probe of which one thing was not seen.
function without(probePath, name) {
  const document = JSON.parse(fs.readFileSync(probePath, "utf8"));
  for (const part of [document.tls, document.response]) delete part[name];
  console.log(JSON.stringify(document));
}

// What a site's page says of its chains is what the program says: to the byte, and to the microsecond.
function site(pagePath, answerPath) {
  const { model } = modelOf(pagePath);
  const answer = JSON.parse(fs.readFileSync(answerPath, "utf8"));
  const started = model.started();
  let compared = 0;
  for (const told of answer.what_if) {
    const chain = told.chain === "today" ? answer.host : `${answer.host} under ${told.chain}`;
    const arm = model.arm(`${started.arms[0].group}/${chain}`);
    if (!arm) { fail(`${pagePath} has no ${chain}`); continue; }
    const view = model.connection(started, arm), [times] = told.times;
    const pairs = {
      certificate: [model.certificate(arm), told.certificate_bytes], "on the wire": [view.sent, told.server_flight_wire_bytes],
      flights: [view.serverFlights, told.flights], handshake: [view.handshake, times.handshake_ms],
      "first byte": [view.first, times.first_byte_ms ?? -1], "last byte": [view.last, times.last_byte_ms],
      left: [view.above < 0 ? null : view.above - model.certificate(arm), told.left ?? null],
      over: [view.below < 0 ? null : model.certificate(arm) - view.below, told.over ?? null],
    };
    for (const [what, [page, program]] of Object.entries(pairs)) {
      check(page === program || Math.abs(page - program) < 0.001, `${chain}, ${what}: the page says ${page}, the program ${program}`);
      compared++;
    }
    // Its address holds it.
    const state = { ...started, arms: [arm, arm] };
    check(model.fragment(model.parse(model.fragment(state))) === model.fragment(state), `${model.fragment(state)} is not as its address has it`);
    check(model.misread(model.fragment(state)) === "", `${model.fragment(state)}: ${model.misread(model.fragment(state))}`);
  }
  check(compared > 0, "nothing was supposed");
  if (!process.exitCode) console.log(`${path.basename(pagePath)}: ${compared} numbers are those of lastbyte probe --what-if`);
}

// ---- in Chromium, over a pipe

async function browser() {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), "explore-"));
  const options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage", "--remote-debugging-pipe",
    `--user-data-dir=${home}`, "about:blank"];
  const child = spawn("chromium", options, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const [, , , input, output] = child.stdio;
  let count = 0, text = "", session;
  const waiting = new Map(), requests = [], errors = [];
  let loaded = () => {};
  output.on("data", part => {
    text += part;
    for (let end; (end = text.indexOf("\0")) >= 0; text = text.slice(end + 1)) {
      const message = JSON.parse(text.slice(0, end));
      if (message.id) {
        const [resolve, reject] = waiting.get(message.id);
        waiting.delete(message.id);
        message.error ? reject(new Error(message.error.message)) : resolve(message.result);
      } else if (message.method === "Page.loadEventFired") loaded();
      else if (message.method === "Network.requestWillBeSent") requests.push(message.params.request.url);
      else if (message.method === "Runtime.exceptionThrown") errors.push(message.params.exceptionDetails.exception?.description);
    }
  });
  const ask = (method, params, sessionId) => new Promise((resolve, reject) => {
    waiting.set(++count, [resolve, reject]);
    input.write(JSON.stringify({ id: count, method, params, ...(sessionId && { sessionId }) }) + "\0");
  });
  const send = (method, params = {}) => ask(method, params, session);
  const { targetInfos } = await send("Target.getTargets");
  const { targetId } = targetInfos.find(target => target.type === "page");
  ({ sessionId: session } = await send("Target.attachToTarget", { targetId, flatten: true }));
  for (const domain of ["Page", "Runtime", "Network"]) await send(`${domain}.enable`);
  async function evaluate(expression) {
    const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
    return result.value;
  }
  const until = async expression => {
    for (let attempt = 0; attempt < 1200; attempt++) {
      if (await evaluate(`!!(${expression})`)) return;
      await new Promise(resolve => setTimeout(resolve, 50));
    }
    throw new Error(`never: ${expression}`);
  };
  return {
    send, evaluate, until, requests, errors,
    // How long the thread that runs scripts and lays pages out has had a processor, in milliseconds.
    async busy() {
      const { processInfo } = await ask("SystemInfo.getProcessInfo", {});
      const threads = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => fs.readFileSync(`/proc/${id}/task/${id}/schedstat`, "utf8"));
      return threads.reduce((sum, text) => sum + Number(text.split(" ")[0]) / 1e6, 0);
    },
    size: (width, height, deviceScaleFactor = 1) =>
      send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor, mobile: width < 500 }),
    media: features => send("Emulation.setEmulatedMedia", { features: Object.entries(features).map(([name, value]) => ({ name, value })) }),
    async open(file, fragment = "", ready = "globalThis.explored") {
      const done = new Promise(resolve => { loaded = resolve; });
      await send("Page.navigate", { url: `file://${path.resolve(file)}${fragment}` });
      await done;
      await until(ready);
    },
    async press(key) {
      const code = { Tab: 9, ArrowRight: 39, ArrowLeft: 37, ArrowDown: 40, Home: 36, End: 35, Enter: 13, PageUp: 33 }[key];
      await send("Input.dispatchKeyEvent", { type: "keyDown", key, code: key, windowsVirtualKeyCode: code, ...(key === "Enter" && { text: "\r" }) });
      await send("Input.dispatchKeyEvent", { type: "keyUp", key, code: key, windowsVirtualKeyCode: code });
    },
    async close() {
      const ended = new Promise(resolve => child.once("exit", resolve));
      child.kill();
      await ended;
      // Its helpers end after it, and write until then: what was listed is not all.
      for (let tries = 0; ; tries += 1) {
        try {
          fs.rmSync(home, { recursive: true, force: true });
          break;
        } catch (error) {
          if (tries === 50) throw error;
          await new Promise(resolve => setTimeout(resolve, 100));
        }
      }
    },
  };
}

async function inBrowser(work) {
  const page = await browser();
  try {
    await work(page);
    check(page.errors.length === 0, `the page threw ${page.errors[0]}`);
    check(page.requests.every(url => /^(file|data):/.test(url)), `the page asked for ${page.requests.join(", ")}`);
  } finally {
    await page.close();
  }
}

// Characters that addresses can have, and some that they can't.
function odd(draw) {
  const keys = ["rtt", "rate", "initcwnd", "data", "baseline", "against", "", "__proto__", "arms"];
  const values = ["35ms", "-1ms", "1e9ms", "NaN", "0gbit", "unlimited", "99999", "%", "%E0%A4%A", "toString", "constructor/constructor", "x25519", "x25519/",
    "x25519/ecdsa-p256:99999999B", "X25519MLKEM768/ml-dsa-65:1B", "x25519/rsa-2048/delivery=pqtls-ad", "x25519/ecdsa-p256/intermediates=9", "<b>", "\u{1f600}",
    "X25519MLKEM768/slh-dsa-sha2-256f/intermediates=3", "x25519/ml-dsa-65/transport=quic", "x25519/ecdsa-p256:30000B/transport=quic", "x25519/ecdsa-p256:60000B", "1024KiB", "0.01ms", "MLKEM768/ml-dsa-87/delivery=elide"];
  const parts = [];
  for (let part = draw(8); part >= 0; part--) {
    const value = draw(4) ? values[draw(values.length)] : Array.from({ length: draw(12) }, () => String.fromCodePoint(33 + draw(600))).join("");
    parts.push(`${keys[draw(keys.length)]}=${value}`);
  }
  return parts.join("&");
}

function drawn(seed) {
  let state = seed;
  return bound => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor(state / 2 ** 32 * bound);
  };
}

async function inChromium(pagePath) {
  await inBrowser(async page => {
    await page.size(360, 740);
    await page.open(pagePath);
    const value = id => page.evaluate(`document.getElementById("${id}").textContent`);
    const first = await value("verdict");
    check(first.includes("later"), `the page begins with: ${first}`);

    // By keyboard alone: each control is reached, in the order of the page, and each key changes something.
    const wanted = ["group-0", "chain-0", "transport-0", "way-0", "bytes-0", "group-1", "chain-1", "transport-1", "way-1", "bytes-1", "A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "rtt", "rate",
      "initcwnd", "data", "command", "copy"];
    const order = [];
    for (let step = 0; step < wanted.length; step++) {
      await page.press("Tab");
      order.push(await page.evaluate("document.activeElement.id || document.activeElement.tagName"));
    }
    check(order.join() === wanted.join(), `Tab goes to ${order.join()}`);
    for (const [id, key, expected] of [["initcwnd", "ArrowRight", "11 segments"], ["rtt", "Home", "1 ms"], ["data", "End", "1024 KiB"], ["bytes-1", "ArrowRight", "11 720"]]) {
      await page.evaluate(`document.getElementById("${id}").focus()`);
      await page.press(key);
      const text = (await page.evaluate(`document.activeElement.getAttribute("aria-valuetext")`)).replace(/\s/g, " ");
      check(text.startsWith(expected), `${key} on ${id} says ${text}`);
    }
    await page.until(`location.hash.includes("initcwnd=11&data=1024KiB") && location.hash.includes("rtt=1ms") && location.hash.includes("ml-dsa-65:11720B")`);
    await page.until(`document.getElementById("spoken").textContent.length > 40`);
    const surprise = `[...document.querySelectorAll("nav a")].find(link => link.textContent.startsWith("More handshake"))`;
    await page.evaluate(`${surprise}.focus()`);
    await page.press("Enter");
    await page.until(`${surprise}.getAttribute("aria-current")`);
    await page.until(`document.getElementById("because").textContent.includes("sooner")`);

    // What a screen reader needs.
    const unnamed = await page.evaluate(`[...document.querySelectorAll("input, select, button, svg")].filter(node =>
      !(node.labels && node.labels.length) && !node.getAttribute("aria-label") && !node.textContent.trim()).length`);
    check(unnamed === 0, `${unnamed} controls or drawings without a name`);
    check(await page.evaluate(`document.querySelectorAll("[role=status]").length`) === 1, "nothing is spoken");

    // An address that is not understood is told of, until something else is chosen.
    for (const [address, expected] of [["rtt=35ms", ""], ["against=X25519MLKEM768/ml-dsa-65/intermediates=1", ""],
      ["against=X25519MLKEM768/ml-dsa-44:20000B/intermediates=1", ""], ["against=X25519MLKEM768/ml-dsa-44+ml-dsa-65", ""], ["rtt=fast", "rtt=fast, which this page does not understand: rtt=35ms is shown instead"],
      ["against=x25519/rsa-1024", "against=X25519MLKEM768/ml-dsa-65 is shown"], ["x=1&rate=%&data=1", "and 2 other parts"]]) {
      const words = await page.evaluate(`(() => { explored.set("${address}"); const node = document.getElementById("misread"); return node.hidden ? "" : node.textContent; })()`);
      check(expected ? words.includes(expected) : !words, `of ${address} it is said: ${words}`);
    }
    await page.evaluate(`document.getElementById("initcwnd").focus()`);
    await page.press("ArrowRight");
    await page.until(`document.getElementById("misread").hidden`);

    // Any address is survived, and none is a sideways scroll.
    const draw = drawn(1);
    const addresses = JSON.stringify(Array.from({ length: 300 }, () => odd(draw)));
    const wrong = await page.evaluate(`${addresses}.filter(address => {
      explored.set(address);
      explored.draw();
      const { arms, ...numbers } = explored.state();
      const wide = document.documentElement.scrollWidth > 360;
      // What is said of an address has its words.
      document.getElementById("misread").textContent = "";
      return !Object.values(numbers).every(Number.isFinite) || wide ||
        [...document.querySelectorAll("header, form, fieldset, section")].some(part => /NaN|undefined|Infinity/.test(part.innerHTML));
    })`);
    check(wrong.length === 0, `addresses that are not survived: ${JSON.stringify(wrong.slice(0, 3))}`);

    // Dark is dark, and nothing moves.
    await page.media({ "prefers-color-scheme": "dark", "prefers-reduced-motion": "reduce" });
    check(await page.evaluate(`getComputedStyle(document.body).backgroundColor`) === "rgb(20, 23, 26)", "dark is not dark");
    const moving = await page.evaluate(`document.getAnimations().length + [...document.querySelectorAll("*")].filter(node =>
      parseFloat(getComputedStyle(node).transitionDuration) > 0 || getComputedStyle(node).animationName !== "none").length`);
    check(moving === 0, `${moving} things move`);
    if (!process.exitCode) console.log("keyboard, names, 300 odd addresses at 360 pixels, dark: as they have to be");
  });
}

// What a screen reader is told, and what a finger can hit, of any page.
async function accessible(...pages) {
  const CONTROLS = new Set(["button", "link", "combobox", "listbox", "slider", "textbox", "checkbox", "radio", "spinbutton", "DisclosureTriangle"]);
  const VALUED = new Set(["slider", "combobox", "spinbutton"]);
  for (const file of pages) {
    await inBrowser(async page => {
      await page.send("Accessibility.enable");
      for (const [width, height] of [[360, 740], [1100, 900]]) {
        await page.size(width, height);
        await page.open(file, "", "document.readyState === 'complete'");
        const { nodes } = await page.send("Accessibility.getFullAXTree");
        const of = node => ({
          role: node.role?.value, name: (node.name?.value ?? "").trim(), value: node.value?.value,
          spoken: node.properties?.find(({ name }) => name === "valuetext")?.value.value,
          focusable: node.properties?.some(({ name, value }) => name === "focusable" && value.value),
        });
        const seen = nodes.filter(node => !node.ignored).map(of);
        // The page itself takes the focus of nobody.
        const controls = seen.filter(node => CONTROLS.has(node.role) || node.focusable && node.role !== "RootWebArea");
        const where = `${path.basename(file)}, ${width} pixels`;
        const wrong = (list, words) => check(list.length === 0, `${where}: ${list.length} ${words}, such as ${JSON.stringify(list[0])}`);
        wrong(controls.filter(node => !node.name), "controls without a name");
        wrong(controls.filter(node => !node.role || node.role === "generic"), "controls without a role");
        wrong(controls.filter(node => VALUED.has(node.role) && `${node.spoken ?? node.value ?? ""}` === ""), "controls without a value");
        wrong(seen.filter(node => ["image", "img"].includes(node.role) && !node.name), "drawings without a name");
        // WCAG 2.2, 2.5.8: 24 pixels, but for links in the midst of a sentence.
        const small = await page.evaluate(`[...document.querySelectorAll("input, select, button, summary, nav a")].filter(node => {
          const { width, height } = node.getBoundingClientRect();
          return node.checkVisibility() && (width < 24 || height < 24);
        }).map(node => node.id || node.textContent.trim().slice(0, 40) || node.tagName)`);
        wrong(small, "controls of less than 24 pixels");
        if (!process.exitCode) console.log(`${where}: ${controls.length} controls with name, role and value, large enough`);
      }
    });
  }
}

// Redraws of states that are drawn at random, and of one slider, in time of a processor and by the clock.
async function measure(pagePath) {
  await inBrowser(async page => {
    for (const [width, height] of [[1100, 900], [360, 740]]) {
      await page.size(width, height);
      await page.open(pagePath);
      await page.evaluate(`(() => {
        ${drawn}
        const { model } = explored, draw = drawn(7), one = list => list[draw(list.length)];
        const arm = () => model.label(model.fitted({ group: one(model.sizes.groups).name, chain: one(model.sizes.chains).name,
          way: one(model.sizes.ways).key, bytes: draw(3) ? null : draw(60000),
          transport: one(model.TRANSPORTS) }));
        globalThis.redraw = { times: [], anything() {
          explored.set("baseline=" + arm() + "&against=" + arm() + "&rtt=" + one(model.scales.rtt) + "ms&rate=" + model.rateOption(one(model.scales.rate)) +
            "&initcwnd=" + one(model.scales.initcwnd) + "&data=" + one(model.scales.data) + "KiB");
        }, slider(index) { explored.state().initcwnd = 1 + index % 40; }, run(change, count) {
          redraw.times = [];
          for (let index = 0; index < count; index++) {
            const begin = performance.now();
            redraw[change](index);
            explored.draw();
            document.body.offsetHeight;
            redraw.times.push(performance.now() - begin);
          }
        } };
      })()`);
      for (const [change, words] of [["anything", "everything changed"], ["slider", "the window moved"]]) {
        const count = 500;
        await page.evaluate(`redraw.run("${change}", 100)`);
        const before = await page.busy();
        await page.evaluate(`redraw.run("${change}", ${count})`);
        const cpu = (await page.busy()) - before;
        const times = (await page.evaluate("redraw.times")).sort((one, other) => one - other);
        const at = share => times[Math.min(count - 1, Math.floor(count * share))].toFixed(1);
        console.log(`${width} pixels, ${words}: ${(cpu / count).toFixed(1)} ms of a processor each, by the clock median ${at(0.5)}, p95 ${at(0.95)}, most ${at(1)} ms (n=${count})`);
      }
    }
  });
}

async function picture(pagePath, file) {
  await inBrowser(async page => {
    await page.size(1100, 900);
    await page.open(pagePath);
    const clip = await page.evaluate(`(() => {
      // The answer, and what it is drawn with.
      for (const node of document.querySelectorAll("#controls, .network, .kicker, h1")) node.style.display = "none";
      const end = document.querySelector(".ladders").getBoundingClientRect().bottom;
      return { x: 30, y: 24, width: 1040, height: end - 16 };
    })()`);
    const { data } = await page.send("Page.captureScreenshot", { format: "png", clip: { ...clip, scale: 1 }, captureBeyondViewport: true });
    fs.writeFileSync(file, Buffer.from(data, "base64"));
  });
}

const works = { bits, said, site, without, browser: inChromium, accessible, measure, picture };
if (!works[what]) {
  fail("usage: node page.mjs bits|said|site|without|browser|accessible|measure|picture FILE...");
} else {
  await works[what](...rest);
}
