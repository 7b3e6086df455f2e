//! Makes up the shards of a run, with the library's own writer, always the same:
//!
//!     shards make FOLDER SHARDS CELLS CONNECTIONS
//!     shards gather FOLDER OUT
//!
//! FOLDER gets a folder for each shard. Each of two arms has so many connections in each cell, in blocks of 250 as the
//! virtual engine measures them. The second line gathers them as `lastbyte run --gather` does, and summarises nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::env;
use std::fs::{self, File};
use std::path::Path;

use lastbyte_results::fixtures::{CLASSICAL, HYBRID, environment, sample};
use lastbyte_results::{Folder, Manifest, PartHeader, Row, Start, gather, write_part};
use lastbyte_study::{BlockId, Study};

const BLOCK: u32 = 250;

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let arguments: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    let number = |text: &str| text.parse::<u32>().expect("no number");
    match arguments.as_slice() {
        ["make", folder, shards, cells, connections] => {
            make(folder, number(shards), number(cells), number(connections))
        }
        ["gather", folder, out] => gather_all(folder, out),
        _ => panic!(
            "usage: shards make FOLDER SHARDS CELLS CONNECTIONS, or shards gather FOLDER OUT"
        ),
    }
}

fn gather_all(folder: &str, out: &str) {
    let shards = fs::read_dir(folder).unwrap();
    let mut shards: Vec<_> = shards.map(|shard| shard.unwrap().path()).collect();
    shards.sort();
    let gathered = gather(&shards, Path::new(out), &[]).unwrap();
    assert_eq!((gathered.missing.len(), gathered.damaged.len()), (0, 0));
    gathered.folder.merge(&gathered.study).unwrap();
}

fn make(folder: &str, shards: u32, cells: u32, connections: u32) {
    let rtts: Vec<String> = (1..=cells).map(|rtt| format!("\"{rtt}ms\"")).collect();
    let text = format!(
        "connections = {connections}\n[arm.old]\ntls = \"{CLASSICAL}\"\n[arm.new]\ntls = \"{HYBRID}\"\n\
         [link.path]\nrtt = [{}]\n[[measure]]\nid = \"made-up\"\ndata = \"50KiB\"\n",
        rtts.join(", ")
    );
    let study = Study::parse(&text, Path::new("made-up.toml")).unwrap();
    let folders: Vec<Folder> = (1..=shards)
        .map(|shard| {
            let path = Path::new(folder).join(shard.to_string());
            let manifest = Manifest::new(&study, BLOCK, environment());
            Folder::take(&path, &study, manifest, Start::Afresh).unwrap()
        })
        .collect();
    for cell in 0..cells as usize {
        for arm in 0..2 {
            let made = sample(&study.measures[0].experiment, cell, arm);
            for (block, rows) in (0..).zip(made.rows.chunks(BLOCK as usize)) {
                let id = BlockId {
                    measure: 0,
                    cell,
                    block,
                    arm,
                };
                let rows: Vec<Row> = rows
                    .iter()
                    .map(|row| Row {
                        block,
                        ..row.clone()
                    })
                    .collect();
                let header = PartHeader::new(
                    &study,
                    id,
                    study.block(id, BLOCK),
                    made.chain_digest.clone(),
                    made.engine.clone(),
                    environment(),
                );
                let folder = &folders[(block % shards) as usize];
                let file = File::create(folder.draft(&study, id)).unwrap();
                write_part(file, &header.unwrap(), &study, &rows).unwrap();
                folder.keep(&study, id).unwrap();
            }
        }
    }
}
