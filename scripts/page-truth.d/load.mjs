// Loads a page in Chromium, each time in a browser context of its own, and writes when it was painted and loaded.
//
//     node load.mjs URL ADDRESS LOADS HOME OUT.json OUT.har
//
// Each name is at ADDRESS. The browser has HOME, with the roots that it trusts. The HAR, which is of the last load, is as Chromium's developer tools save it.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";

const [url, address, loads, home, out, har] = process.argv.slice(2);
const sleep = (ms) => new Promise((woken) => setTimeout(woken, ms));

// The browser as it is, without what it does by itself.
const browser = spawn(
  process.env.LASTBYTE_CHROMIUM || "chromium",
  [
    "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run", "--no-default-browser-check", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync", "--disable-quic",
    `--user-data-dir=${home}/profile`, `--host-resolver-rules=MAP * ${address}`, "about:blank",
  ],
  { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"], env: { HOME: home, TMPDIR: home, LANG: "C.UTF-8", PATH: process.env.PATH } },
);
const [, , , to, from] = browser.stdio;
browser.on("exit", (status) => fail(`the browser has ended with ${status}`));

function fail(problem) {
  console.error(`load.mjs: ${problem}`);
  process.exit(1);
}

const waiting = new Map();
let listener = () => {};
let rest = "";
let last = 0;
from.setEncoding("utf8").on("data", (text) => {
  const messages = (rest + text).split("\0");
  rest = messages.pop();
  for (const message of messages.map((one) => JSON.parse(one))) {
    if (message.id) {
      waiting.get(message.id)(message);
      waiting.delete(message.id);
    } else listener(message);
  }
});
function call(method, params = {}, sessionId = undefined) {
  last += 1;
  to.write(`${JSON.stringify({ id: last, method, params, sessionId })}\0`);
  return new Promise((answered) => waiting.set(last, answered)).then((answer) => {
    if (answer.error) fail(`${method}: ${answer.error.message}`);
    return answer.result;
  });
}

// A load, and the requests of it in their order, each with the events that tell of it.
async function load() {
  const { browserContextId } = await call("Target.createBrowserContext");
  const { targetId } = await call("Target.createTarget", { url: "about:blank", browserContextId });
  const { sessionId } = await call("Target.attachToTarget", { targetId, flatten: true });
  const page = (method, params) => call(method, params, sessionId);
  const requests = new Map();
  const marks = {};
  let changed = Date.now();
  listener = ({ method, params }) => {
    if (method === "Page.loadEventFired") marks.load = params.timestamp;
    if (method === "Page.domContentEventFired") marks.content = params.timestamp;
    if (!params.requestId || !method.startsWith("Network.")) return;
    changed = Date.now();
    if (!requests.has(params.requestId)) requests.set(params.requestId, { received: 0 });
    const request = requests.get(params.requestId);
    if (method === "Network.dataReceived") request.received += params.dataLength;
    request[method.slice("Network.".length)] = params;
  };
  await page("Page.enable");
  await page("Network.enable");
  await sleep(1000); // A new window starts processes of its own, which are no part of the load.
  await page("Page.navigate", { url });

  // Over once nothing has been under way for a while.
  const began = Date.now();
  const isUnderWay = () => [...requests.values()].some((one) => !one.loadingFinished && !one.loadingFailed);
  while (!marks.load || isUnderWay() || Date.now() - changed < 700) {
    if (Date.now() - began > 90_000) fail(`${url} is not loaded after 90 s`);
    await sleep(50);
  }
  const wrong = [...requests.values()].find((one) => one.responseReceived?.response.status !== 200);
  if (wrong) fail(`${wrong.requestWillBeSent?.request.url} failed`);
  const { result, exceptionDetails } = await page("Runtime.evaluate", {
    awaitPromise: true,
    returnByValue: true,
    expression: `new Promise((resolve) => {
      const [navigation] = performance.getEntriesByType("navigation");
      const painted = performance.getEntriesByName("first-contentful-paint")[0].startTime;
      new PerformanceObserver((list) => resolve({ ttfb: navigation.responseStart, fcp: painted, lcp: list.getEntries().at(-1).startTime, load: navigation.loadEventStart }))
        .observe({ type: "largest-contentful-paint", buffered: true });
    })`,
  });
  if (exceptionDetails) fail(`${url} has no times: ${exceptionDetails.exception.description}`);
  const bodies = new Map();
  for (const id of requests.keys()) bodies.set(id, await page("Network.getResponseBody", { requestId: id }));
  await call("Target.closeTarget", { targetId });
  await call("Target.disposeBrowserContext", { browserContextId });
  return { times: { ...result.value, requests: requests.size }, requests, bodies, marks };
}

const fields = (object) => Object.entries(object ?? {}).map(([name, value]) => ({ name, value }));
const ms = (seconds) => seconds * 1e3;

// As DevTools' HARBuilder has it: https://github.com/ChromeDevTools/devtools-frontend/blob/main/front_end/models/har/Log.ts
function timings(asked, issued, answered, ended) {
  const timing = answered.timing;
  const known = (...times) => Math.min(...times.filter((time) => time >= 0));
  const blockedEnd = known(timing.dnsStart, timing.connectStart, timing.sendStart);
  const queued = Math.max(0, ms(timing.requestTime - issued));
  const dnsEnd = timing.dnsEnd >= 0 ? timing.dnsEnd : blockedEnd;
  const receiveStart = timing.receiveHeadersEnd;
  const sendStart = Math.max(timing.connectEnd, timing.dnsEnd, blockedEnd);
  return {
    blocked: queued + blockedEnd,
    dns: timing.dnsEnd >= 0 ? timing.dnsEnd - timing.dnsStart : -1,
    ssl: timing.sslEnd > 0 ? timing.sslEnd - timing.sslStart : -1,
    connect: timing.connectEnd >= 0 ? timing.connectEnd - dnsEnd : -1,
    send: Math.max(0, timing.sendEnd - sendStart),
    wait: receiveStart - Math.max(timing.sendEnd, timing.connectEnd, 0),
    receive: Math.max(0, ms(ended - timing.requestTime) - receiveStart),
    _blocked_queueing: queued,
  };
}

function entry(request, body) {
  const { requestWillBeSent: asked, responseReceived, loadingFinished } = request;
  const { response } = responseReceived;
  const times = timings(asked, asked.timestamp, response, loadingFinished.timestamp);
  const { initiator } = asked;
  return {
    _connectionId: String(response.connectionId),
    _initiator: { type: initiator.type, url: initiator.url, lineNumber: initiator.lineNumber, stack: initiator.stack },
    _priority: request.resourceChangedPriority?.newPriority ?? asked.request.initialPriority,
    _resourceType: asked.type.toLowerCase(),
    cache: {},
    connection: "443",
    pageref: "page_1",
    request: {
      method: asked.request.method,
      url: asked.request.url,
      httpVersion: "http/2.0",
      headers: fields(request.requestWillBeSentExtraInfo?.headers ?? asked.request.headers),
      queryString: [],
      cookies: [],
      headersSize: -1,
      bodySize: 0,
    },
    response: {
      status: response.status,
      statusText: response.statusText,
      httpVersion: "http/2.0",
      headers: fields(request.responseReceivedExtraInfo?.headers ?? response.headers),
      cookies: [],
      content: {
        size: request.received,
        mimeType: response.mimeType,
        text: body.body,
        ...(body.base64Encoded ? { encoding: "base64" } : {}),
      },
      redirectURL: "",
      headersSize: -1,
      bodySize: -1,
      _transferSize: loadingFinished.encodedDataLength,
      _error: null,
    },
    serverIPAddress: response.remoteIPAddress,
    startedDateTime: new Date(ms(asked.wallTime)).toISOString(),
    time: ["blocked", "dns", "connect", "send", "wait", "receive"].reduce((sum, name) => sum + Math.max(0, times[name]), 0),
    timings: times,
  };
}

function recorded({ requests, bodies, marks }) {
  const overNetwork = [...requests].filter(([, one]) => one.requestWillBeSent.request.url.startsWith("https:"));
  const document = overNetwork[0][1].requestWillBeSent;
  return {
    log: {
      version: "1.2",
      creator: { name: "WebInspector", version: "537.36" },
      pages: [
        {
          startedDateTime: new Date(ms(document.wallTime)).toISOString(),
          id: "page_1",
          title: url,
          pageTimings: { onContentLoad: ms(marks.content - document.timestamp), onLoad: ms(marks.load - document.timestamp) },
        },
      ],
      entries: overNetwork.map(([id, request]) => entry(request, bodies.get(id))),
    },
  };
}

const all = [];
for (let count = 0; count < Number(loads); count += 1) {
  const one = await load();
  all.push(one.times);
  if (count + 1 === Number(loads)) writeFileSync(har, `${JSON.stringify(recorded(one), null, 2)}\n`);
}
writeFileSync(out, `${JSON.stringify(all)}\n`);
browser.removeAllListeners("exit");
await call("Browser.close");
