// A page's origins, as Node.js serves them: HTTP/2 and HTTP/1.1, with its own buffers, windows and session tickets.
//
//     node server.mjs FILE.json
import { readFileSync } from 'node:fs';
import { createSecureServer } from 'node:http2';
import { join } from 'node:path';

const { site, group, idle_ms: idle, origins } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const { origins: described } = JSON.parse(readFileSync(join(site, 'site.json'), 'utf8'));

origins.forEach(({ address, port, chain, key }, place) => {
  const { root, answers } = described[place];
  const known = new Map();
  for (const { path, fields, file, location } of answers) {
    const headers = Object.fromEntries(fields.map(({ name, value }) => [name, value]));
    const body = file === undefined ? '' : readFileSync(join(site, root, file));
    headers['content-length'] = body.length;
    if (location !== undefined) headers.location = location;
    known.set(path, { status: location === undefined ? 200 : 302, headers, body });
  }
  const tls = { cert: readFileSync(chain), key: readFileSync(key), ecdhCurve: group, minVersion: 'TLSv1.3' };
  const server = createSecureServer({ ...tls, allowHTTP1: true }, (request, response) => {
    const answer = known.get(request.url);
    if (answer === undefined) {
      response.writeHead(404, { 'content-length': 0 });
      response.end();
      return;
    }
    response.writeHead(answer.status, answer.headers);
    response.end(answer.body);
  });
  server.keepAliveTimeout = idle;
  server.on('session', (session) => session.setTimeout(idle, () => session.close()));
  server.listen(port, address);
});
