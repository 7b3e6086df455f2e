//! Makes up the shards of a run, with the library's own writer, always the same:
//!
//!     shards FOLDER SHARDS CELLS CONNECTIONS
//!
//! FOLDER gets a folder for each shard. Each of two arms has so many connections in each cell, in blocks of 250 as the
//! virtual engine measures them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::env;
use std::fs::File;
use std::path::Path;

use lastbyte_results::results::fixtures::{CLASSICAL, HYBRID, environment, sample};
use lastbyte_results::results::{Folder, Manifest, PartHeader, Row, Start, write_part};
use lastbyte_results::study::{BlockId, Study};

const BLOCK: u32 = 250;

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let [_, folder, shards, cells, connections] = arguments.as_slice() else {
        panic!("usage: shards FOLDER SHARDS CELLS CONNECTIONS");
    };
    let number = |text: &String| text.parse::<u32>().expect("no number");
    let (shards, cells, connections) = (number(shards), number(cells), number(connections));
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
