//! Answers requests for the files of logs, over HTTP/1.1 (RFC 9112): whoever has a socket sends
//! what comes out of here and closes. There is no other method than GET, and no way out of the
//! folder. Tiles and bundles are served once the checkpoint covers them: what a batch that was cut
//! has left behind gets other bytes later, and clients keep tiles for ever.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::note::Checkpoint;

/// The most bytes of a request that are looked at. Longer ones are refused.
pub const MAX_REQUEST_BYTES: usize = 8192;

/// Hashes of a full tile, and entries of a full bundle.
const FULL: u64 = 256;

/// The most bytes of a file that is served: a bundle of the longest entries fits.
const MAX_FILE_BYTES: u64 = 256 * (2 + 65_535);

/// Where a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// More of it has to come.
    Unfinished,
    /// It is a request for this target.
    Get(&'a str),
    /// It is none that is answered, for this reason: the status line.
    Refused(&'static str),
}

const BAD: &str = "400 Bad Request";
const NOT_FOUND: &str = "404 Not Found";

impl<'a> Request<'a> {
    /// Reads what has come so far.
    pub fn parse(bytes: &'a [u8]) -> Request<'a> {
        if !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
            return match bytes.len() {
                ..MAX_REQUEST_BYTES => Request::Unfinished,
                _ => Request::Refused("431 Request Header Fields Too Large"),
            };
        }
        let line = bytes
            .split(|byte| *byte == b'\r')
            .next()
            .unwrap_or_default();
        let Ok(line) = str::from_utf8(line) else {
            return Request::Refused(BAD);
        };
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["GET", target, "HTTP/1.1" | "HTTP/1.0"] => Request::Get(target),
            [_, _, "HTTP/1.1" | "HTTP/1.0"] => Request::Refused("405 Method Not Allowed"),
            _ => Request::Refused(BAD),
        }
    }

    /// The whole response, from a folder with logs under their numbers. An unfinished request has
    /// none.
    pub fn response(self, folder: &Path) -> Option<Vec<u8>> {
        match self {
            Request::Unfinished => None,
            Request::Refused(status) => Some(response(status, "text/plain", b"")),
            Request::Get(target) => {
                let file = path(target)
                    .filter(|path| is_covered(folder, path))
                    .and_then(|path| {
                        let content = read(folder, &path).ok().flatten()?;
                        Some((content_type(&path), content))
                    });
                Some(match file {
                    Some((kind, content)) => response("200 OK", kind, &content),
                    None => response(NOT_FOUND, "text/plain", b""),
                })
            }
        }
    }
}

/// The file of a target: names of letters, digits and dots, none of which begins with a dot.
fn path(target: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for name in target.strip_prefix('/')?.split('/') {
        let valid = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
        if !valid || name.is_empty() || name.starts_with('.') {
            return None;
        }
        path.push(name);
    }
    Some(path)
}

/// Whether the checkpoint of its log covers a file; all that are no tiles are covered.
fn is_covered(folder: &Path, path: &Path) -> bool {
    let names: Vec<_> = path.iter().filter_map(|name| name.to_str()).collect();
    let [log, "tile", level, place @ ..] = &names[..] else {
        return true;
    };
    let level = match *level {
        "entries" => Some(0),
        level => level.parse::<u32>().ok(),
    };
    let covered = || {
        let (number, width) = tile(place)?;
        let checkpoint = read(folder, &Path::new(log).join("checkpoint")).ok()??;
        let checkpoint = Checkpoint::parse(str::from_utf8(&checkpoint).ok()?).ok()?;
        let hashes = checkpoint.size.checked_shr(8 * level?).unwrap_or(0);
        let end = number.checked_mul(FULL)?.checked_add(width)?;
        Some(end <= hashes)
    };
    covered().unwrap_or(false)
}

/// The number and the width of a tile, as its path tells them: `x001/x234/067`, or
/// `x001/x234/067.p/8` of a partial one.
fn tile(place: &[&str]) -> Option<(u64, u64)> {
    let (place, width) = match place {
        [place @ .., last, width] if last.ends_with(".p") => {
            let width = width
                .parse()
                .ok()
                .filter(|width| (1..FULL).contains(width))?;
            ([place, &[last.trim_end_matches(".p")]].concat(), width)
        }
        place => (place.to_vec(), FULL),
    };
    let mut number: u64 = 0;
    for (left, name) in (0..place.len()).rev().zip(&place) {
        let digits = match left {
            0 => name,
            _ => name.strip_prefix('x')?,
        };
        let group = digits.parse::<u64>().ok().filter(|_| digits.len() == 3)?;
        number = number.checked_mul(1000)?.checked_add(group)?;
    }
    (!place.is_empty()).then_some((number, width))
}

/// The content of a folder's file, if it is a regular one, not too long, and there is no symbolic
/// link on the way to it.
fn read(folder: &Path, path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let folder = folder.canonicalize()?;
    let file = folder.join(path);
    if file.canonicalize()? != file || !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut content = Vec::new();
    let mut file = File::open(file)?.take(MAX_FILE_BYTES + 1);
    let length = file.read_to_end(&mut content)?;
    Ok((length as u64 <= MAX_FILE_BYTES).then_some(content))
}

fn content_type(path: &Path) -> &'static str {
    if path.components().any(|part| part.as_os_str() == "tile") {
        "application/octet-stream"
    } else {
        "text/plain; charset=utf-8"
    }
}

fn response(status: &str, kind: &str, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    [head.as_bytes(), content].concat()
}

#[cfg(test)]
mod tests;
