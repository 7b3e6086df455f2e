// A site of three made pages over HTTP/2: /shop/, /article/ and /app/.
//
//     node site.mjs ADDRESS KEY CHAIN GROUP
//
// Writes a line once it listens on port 443.
import { readFileSync } from "node:fs";
import { createSecureServer } from "node:http2";
import { crc32, deflateSync } from "node:zlib";

const [address, key, chain, group] = process.argv.slice(2);

// A generator of our own, so that bodies are the same each time: https://en.wikipedia.org/wiki/Xorshift
let state = 2463534242;
function random(below) {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % below;
}
const letters = (count) => Array.from({ length: count }, () => String.fromCharCode(97 + random(26))).join("");
const words = (bytes) => {
  let text = "";
  while (text.length < bytes) text += letters(2 + random(9)) + " ";
  return text.slice(0, bytes);
};

// What a server sends of each kind. Code and styles are filled up with comments.
const script = (bytes, code = "") => ["text/javascript", `${code}\n/*${words(Math.max(0, bytes - code.length - 5))}*/`];
const style = (bytes, rules = "") => ["text/css", `${rules}\n/*${words(Math.max(0, bytes - rules.length - 5))}*/`];
const data = (bytes) => ["application/json", JSON.stringify({ text: words(bytes - 11) })];
const font = (bytes) => ["font/woff2", Buffer.from(Array.from({ length: bytes }, () => random(256)))];
const html = (head, body) => [
  "text/html; charset=utf-8",
  `<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Made</title><link rel="icon" href="data:,">\n${head}\n</head>\n<body>\n${body}\n</body></html>\n`,
];

// A PNG of noise that is not compressed, so as large as its picture.
function image(width, height) {
  const chunk = (name, body) => {
    const named = Buffer.concat([Buffer.from(name), body]);
    const whole = Buffer.alloc(named.length + 8);
    whole.writeUInt32BE(body.length, 0);
    named.copy(whole, 4);
    whole.writeUInt32BE(crc32(named), named.length + 4);
    return whole;
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const rows = Buffer.alloc(height * (1 + 3 * width));
  for (let at = 0; at < rows.length; at += 1) rows[at] = at % (1 + 3 * width) ? random(256) : 0;
  const parts = [chunk("IHDR", header), chunk("IDAT", deflateSync(rows, { level: 0 })), chunk("IEND", Buffer.alloc(0))];
  return ["image/png", Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), ...parts])];
}

const paragraphs = (count, bytes) => Array.from({ length: count }, () => `<p>${words(bytes)}</p>`).join("\n");
const picture = (source, width, height) => `<img src="${source}" width="${width}" height="${height}" alt="">`;

// 27 resources: styles and scripts that hold up what is seen, scripts at the end that fetch, and a web font.
function shop(files) {
  const goods = Array.from({ length: 12 }, (_, n) => (n === 0 ? [170, 118] : [70 + random(30), 40 + random(40)]));
  files["/shop/"] = html(
    `<link rel="stylesheet" href="base.css"><link rel="stylesheet" href="theme.css">
<script src="vendor.js"></script>\n<script src="head.js"></script>`,
    `<h1>${words(40)}</h1>\n` +
      goods.map(([w, h], n) => `<div>${picture(`${n}.png`, 2 * w, 2 * h)}\n<p>${words(600)}</p></div>`).join("\n") +
      `\n<script src="shop.js"></script>\n<script src="visit.js"></script>`,
  );
  files["/shop/base.css"] = style(18000, "body{font-family:sans-serif;background:url(ground.png)} div{display:inline-block;width:400px}");
  files["/shop/theme.css"] = style(9000, '@font-face{font-family:made;src:url(made.woff2)} h1{font-family:made;background:url(bar.png)}');
  files["/shop/made.woff2"] = font(26000);
  files["/shop/ground.png"] = image(40, 40);
  files["/shop/bar.png"] = image(60, 30);
  files["/shop/vendor.js"] = script(45000, "globalThis.vendor = 1;");
  files["/shop/head.js"] = script(8000, "globalThis.head = 1;");
  files["/shop/shop.js"] = script(
    30000,
    `const get = (what) => fetch("data/" + what).then((it) => it.json());
get("prices"); get("stock"); get("reviews").then(() => get("similar"));`,
  );
  files["/shop/visit.js"] = script(12000, 'fetch("data/visit").then((it) => it.text());');
  for (const [what, bytes] of [["prices", 6000], ["stock", 3000], ["reviews", 14000], ["similar", 9000], ["visit", 400]])
    files[`/shop/data/${what}`] = data(bytes);
  goods.forEach(([w, h], n) => (files[`/shop/${n}.png`] = image(w, h)));
}

// 14 resources: text that can be read early, and one large picture.
function article(files) {
  files["/article/"] = html(
    `<link rel="stylesheet" href="article.css">\n<script src="reader.js" defer></script>`,
    `<h1>${words(50)}</h1>\n<p>${words(300)}</p>\n${picture("large.png", 900, 500)}\n${paragraphs(8, 900)}\n` +
      Array.from({ length: 6 }, (_, n) => `${picture(`${n}.png`, 300, 200)}\n${paragraphs(2, 900)}`).join("\n") +
      `\n<div id="comments"></div>\n<script src="comments.js"></script>`,
  );
  files["/article/article.css"] = style(12000, "@font-face{font-family:made;font-display:swap;src:url(made.woff2)} body{font-family:made,serif}");
  files["/article/made.woff2"] = font(31000);
  files["/article/reader.js"] = script(21000, "globalThis.reader = 1;");
  files["/article/large.png"] = image(310, 240);
  for (let n = 0; n < 6; n += 1) files[`/article/${n}.png`] = image(80 + random(40), 60 + random(40));
  files["/article/comments.js"] = script(
    16000,
    `fetch("data/comments").then((it) => it.json()).then((it) => {
  document.getElementById("comments").innerHTML = '<img src="face.png" width="40" height="40"><p>' + it.text;
});`,
  );
  files["/article/data/comments"] = data(11000);
  files["/article/face.png"] = image(40, 40);
}

// 16 resources: a script that loads others, which fetch what is shown.
function app(files) {
  files["/app/"] = html(
    `<link rel="stylesheet" href="app.css">\n<script src="main.js" defer></script>`,
    `<h1>${words(30)}</h1>${picture("logo.png", 120, 60)}\n<main>${words(2000)}</main>`,
  );
  files["/app/app.css"] = style(22000, "body{font-family:sans-serif}");
  files["/app/logo.png"] = image(60, 30);
  files["/app/main.js"] = script(
    110000,
    `globalThis.load = (source) => new Promise((there) => {
  const script = document.createElement("script");
  script.src = source; script.onload = there; document.head.append(script);
});
Promise.all([load("router.js"), load("store.js")]).then(() => fetch("data/session")).then((it) => it.json()).then(() => load("view.js"));`,
  );
  files["/app/router.js"] = script(40000);
  files["/app/store.js"] = script(25000);
  files["/app/data/session"] = data(2000);
  files["/app/view.js"] = script(
    35000,
    `Promise.all(["user", "items"].map((what) => fetch("data/" + what).then((it) => it.json()))).then(([, items]) => {
  const pictures = [0, 1, 2, 3, 4, 5].map((n) => '<img src="' + n + '.png" width="200" height="150">').join("");
  document.querySelector("main").innerHTML = pictures + "<p>" + items.text;
});`,
  );
  files["/app/data/user"] = data(1500);
  files["/app/data/items"] = data(24000);
  for (let n = 0; n < 6; n += 1) files[`/app/${n}.png`] = image(60 + random(30), 45 + random(20));
}

const files = {};
shop(files);
article(files);
app(files);

const server = createSecureServer({ key: readFileSync(key), cert: readFileSync(chain), ecdhCurve: group, minVersion: "TLSv1.3" });
server.on("stream", (stream, request) => {
  const file = files[request[":path"]];
  if (!file) {
    stream.respond({ ":status": 404 }, { endStream: true });
    return;
  }
  const [type, body] = file;
  const kept = type.startsWith("text/html") || type === "application/json" ? "no-store" : "public, max-age=3600";
  stream.respond({ ":status": 200, "content-type": type, "content-length": Buffer.byteLength(body), "cache-control": kept });
  stream.end(body);
});
server.listen(443, address, () => console.log("listening"));
