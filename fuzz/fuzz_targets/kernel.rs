//! A packed kernel of whatever bytes, or of whatever files with right checksums and digests, compressed here where it is
//! not yet: it is refused, or it is written and read as it was. A digest is one or none.
#![no_main]

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use lastbyte::kernel::{Digest, Packed};
use lastbyte_fuzz::pieces;
use libfuzzer_sys::fuzz_target;
use openssl::sha::sha256;
use tar::{Builder, EntryType, Header};

/// What a text about a kernel says where the digest of its program is to stand.
const DIGEST: &str = "DIGEST";

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Ok(digest)) = str::from_utf8(bytes).map(str::parse::<Digest>) {
        assert_eq!(digest.to_string().parse(), Ok(digest));
    }
    match bytes.strip_prefix(b"files") {
        None => {
            read(bytes);
            read(&compressed(bytes));
        }
        Some(files) => read(&compressed(&archive(files))),
    }
});

fn read(bytes: &[u8]) {
    match Packed::read(bytes) {
        Ok(packed) => assert_eq!(Packed::read(&packed.write().unwrap()), Ok(packed)),
        Err(problem) => assert!(
            !problem.to_string().chars().any(char::is_control),
            "{problem:?}"
        ),
    }
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = GzEncoder::new(Vec::new(), Compression::none());
    compressed.write_all(bytes).unwrap();
    compressed.finish().unwrap()
}

/// The files that `data` tells: what is said of a kernel, its program, and others.
fn archive(data: &[u8]) -> Vec<u8> {
    const NAMES: [&str; 4] = ["kernel.json", "linux", "other", "../linux"];
    const KINDS: [EntryType; 4] = [
        EntryType::Regular,
        EntryType::Symlink,
        EntryType::Directory,
        EntryType::GNUSparse,
    ];
    let program = pieces(data)
        .find(|(tag, _)| tag % 4 == 1)
        .map_or(&[][..], |(_, piece)| piece);
    let digest = hex::encode(sha256(program));
    let mut archive = Builder::new(Vec::new());
    for (tag, piece) in pieces(data).take(8) {
        let content = match tag % 4 {
            0 => String::from_utf8_lossy(piece)
                .replace(DIGEST, &digest)
                .into_bytes(),
            _ => piece.to_vec(),
        };
        let mut header = Header::new_ustar();
        let name = NAMES[usize::from(tag % 4)].as_bytes();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_entry_type(KINDS[usize::from(tag / 4) % 4]);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_size(match tag & 0x80 {
            0 => content.len() as u64,
            _ => u64::from(tag) << 33,
        });
        header.set_cksum();
        archive.append(&header, content.as_slice()).unwrap();
    }
    archive.into_inner().unwrap()
}
