// The Node.js peer of the interop tests:
//
//     node node.js server CHAIN KEY [GROUPS]
//     node node.js client ADDRESS SERVER-NAME ROOT [GROUPS]
//
// The server prints its address and answers requests until it is ended. The client asks once
// and prints the response. Files are PEM, and groups are OpenSSL's names, joined by colons;
// without any, Node.js offers its own choice.
'use strict';
const fs = require('node:fs');
const https = require('node:https');

const [role, ...rest] = process.argv.slice(2);
const minVersion = 'TLSv1.3';

function serve(chain, key, ecdhCurve = 'auto') {
  const files = { cert: fs.readFileSync(chain), key: fs.readFileSync(key) };
  const server = https.createServer({ ...files, ecdhCurve, minVersion }, (_, response) => {
    response.end('hello from Node.js');
  });
  server.listen(0, '127.0.0.1', () => {
    const { address, port } = server.address();
    console.log(`listening on ${address}:${port}`);
  });
}

function ask(address, servername, root, ecdhCurve = 'auto') {
  const [host, port] = address.split(':');
  const ca = fs.readFileSync(root);
  const headers = { Host: servername };
  const options = { host, port, servername, headers, ca, ecdhCurve, minVersion };
  https.get({ ...options, agent: false }, (response) => {
    response.pipe(process.stdout);
  });
}

({ server: serve, client: ask })[role](...rest);
