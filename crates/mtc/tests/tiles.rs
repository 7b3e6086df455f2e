//! The files of a log, as others read tiles (c2sp.org/tlog-tiles).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::PathBuf;

use lastbyte_mtc::log::{Log, bundle_path};
use lastbyte_mtc::{LogId, LogNumber, entry};
use tlog_tiles::{Hash, Tile, TileHashReader, TileReader};

/// Reads the tiles of a folder, eight levels each.
struct Folder(PathBuf);

impl TileReader for Folder {
    fn height(&self) -> u8 {
        8
    }

    fn read_tiles(&self, tiles: &[Tile]) -> Result<Vec<Vec<u8>>, tlog_tiles::Error> {
        let read = |tile: &Tile| {
            // Without the height, which c2sp.org leaves out.
            let path = tile.path().replacen("tile/8/", "tile/", 1);
            // A log need not keep the narrower ones of a tile that is full.
            let full = path.split(".p/").next().unwrap();
            let read = [&path, full].map(|path| fs::read(self.0.join(path)));
            let mut hashes = read.into_iter().find_map(Result::ok).unwrap();
            hashes.truncate(32 * tile.width() as usize);
            hashes
        };
        Ok(tiles.iter().map(read).collect())
    }

    fn save_tiles(&self, _tiles: &[Tile], _data: &[Vec<u8>]) {}
}

#[test]
fn another_reader_of_tiles_finds_every_entry() {
    let folder = tempfile::tempdir().unwrap();
    let id = LogId::new("32473.1".parse().unwrap(), LogNumber::FIRST).unwrap();
    let mut log = Log::open(id, folder.path()).unwrap();
    let mut sizes = vec![(0, log.root().unwrap())];
    for batch in [1_u64, 255, 1, 700, 66_000, 256] {
        let before = log.size();
        let entries: Vec<String> = (before..before + batch).map(|at| at.to_string()).collect();
        log.append(&entries).unwrap();
        sizes.push((log.size(), log.root().unwrap()));
    }
    let reader = Folder(folder.path().to_owned());
    for &(size, root) in &sizes[1..] {
        let tiles = TileHashReader::new(size, Hash(root.0), &reader);
        assert_eq!(tlog_tiles::tree_hash(size, &tiles).unwrap(), Hash(root.0));
        for index in [0, size / 3, size / 2, size - 1] {
            let proof = tlog_tiles::prove_record(size, index, &tiles).unwrap();
            let leaf = Hash(entry::leaf(index.to_string().as_bytes()).0);
            tlog_tiles::check_record(&proof, size, Hash(root.0), index, leaf).unwrap();
        }
    }
    let (last, root) = sizes[sizes.len() - 1];
    let tiles = TileHashReader::new(last, Hash(root.0), &reader);
    for &(size, earlier) in &sizes[1..] {
        let proof = tlog_tiles::prove_tree(last, size, &tiles).unwrap();
        tlog_tiles::check_tree(&proof, last, Hash(root.0), size, Hash(earlier.0)).unwrap();
    }
    let bundle = fs::read(folder.path().join(bundle_path(1, 256))).unwrap();
    assert_eq!(bundle[..5], [0, 3, b'2', b'5', b'6']);
}

#[test]
fn another_reader_of_checkpoints_reads_ours() {
    struct Signer(lastbyte_mtc::TrustAnchorId);
    impl lastbyte_mtc::Cosigner for Signer {
        fn id(&self) -> &lastbyte_mtc::TrustAnchorId {
            &self.0
        }

        fn sign(&self, message: &[u8]) -> Result<Vec<u8>, lastbyte_mtc::cosign::SignError> {
            Ok(message.to_owned())
        }
    }
    let id = LogId::new("32473.1".parse().unwrap(), LogNumber::FIRST).unwrap();
    let signer = Signer(id.ca().clone());
    let signers = [lastbyte_mtc::note::NoteSigner {
        cosigner: &signer,
        key: b"key",
    }];
    let root = lastbyte_mtc::HashValue::of(b"root");
    let time = lastbyte_mtc::UnixTime(7);
    let note = lastbyte_mtc::note::sign(&id, 1234, root, time, &signers).unwrap();
    let (body, _) = note.split_once("\n\n").unwrap();
    let read = tlog_tiles::Checkpoint::from_bytes(format!("{body}\n").as_bytes()).unwrap();
    assert_eq!(read.origin(), "oid/1.3.6.1.4.1.32473.1.0.1");
    assert_eq!((read.size(), read.hash().0), (1234, root.0));
}
