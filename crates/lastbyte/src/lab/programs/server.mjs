// A page's origins, as Node.js serves them: HTTP/2 and HTTP/1.1, with its own buffers, windows and session tickets.
//
//     node server.mjs FILE.json
import { readFileSync } from 'node:fs';
import { createSecureServer, sensitiveHeaders } from 'node:http2';
import { join } from 'node:path';

const { site, group, idle_ms: idle, origins } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const { origins: described } = JSON.parse(readFileSync(join(site, 'site.json'), 'utf8'));

origins.forEach(({ address, port, chain, key }, place) => {
  const { root, answers } = described[place];
  const known = new Map();
  for (const { path, fields, file, location, recorded } of answers) {
    const headers = Object.fromEntries(fields.map(({ name, value }) => [name, value]));
    const body = file === undefined ? '' : readFileSync(join(site, root, file));
    headers['content-length'] = body.length;
    if (location !== undefined) headers.location = location;
    known.set(path, { status: location === undefined ? 200 : 302, headers, body, recorded });
  }
  const tls = { cert: readFileSync(chain), key: readFileSync(key), ecdhCurve: group, minVersion: 'TLSv1.3' };
  const server = createSecureServer({ ...tls, allowHTTP1: true }, (request, response) => {
    const answer = known.get(request.url);
    if (answer === undefined) {
      response.writeHead(404, { 'content-length': 0 });
      response.end();
      return;
    }
    if (answer.recorded) {
      sendRecorded(request, response, answer);
      return;
    }
    response.writeHead(answer.status, answer.headers);
    response.end(answer.body);
  });
  server.keepAliveTimeout = idle;
  server.on('session', (session) => session.setTimeout(idle, () => session.close()));
  server.listen(port, address);
});

// Each field is a literal, so that a response is as long whichever were there before; and what has not changed is not sent again.
function sendRecorded(request, response, { status, headers, body }) {
  const { 'content-length': length, 'content-type': type, ...rest } = headers;
  const isSame = headers.etag !== undefined && request.headers['if-none-match'] === headers.etag;
  const [code, fields, content] = isSame ? [304, rest, ''] : [status, headers, body];
  if (request.httpVersionMajor < 2) {
    response.sendDate = false;
    response.writeHead(code, fields);
    response.end(content);
    return;
  }
  const { stream } = request;
  stream.respond({ ':status': code, ...fields, [sensitiveHeaders]: Object.keys(fields) }, { sendDate: false });
  stream.end(content);
}
