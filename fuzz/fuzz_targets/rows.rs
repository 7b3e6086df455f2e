//! Rows as `compare` writes them, some of whose bytes are others, or any file, sealed anew: what it says is believed as
//! far as it can be true.
#![no_main]

use std::io::Cursor;
use std::sync::LazyLock;

use lastbyte_fuzz::pieces;
use lastbyte_results::fixtures::{CLASSICAL, cell, environment, experiment, samples};
use lastbyte_results::rows::{Origin, reseal};
use lastbyte_results::{Saved, write_rows};
use lastbyte_study::EngineName;
use libfuzzer_sys::fuzz_target;

static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let experiment = experiment(&[CLASSICAL], vec![cell("0%", "0B")], 3);
    let origin = Origin {
        study: "compare",
        measure: "compare",
        engine: EngineName::Virtual,
    };
    let mut file = Vec::new();
    let (samples, environment) = (samples(&experiment), environment());
    let out = Cursor::new(&mut file);
    write_rows(out, origin, &experiment, &samples, &environment, None).unwrap();
    file
});

fuzz_target!(|data: &[u8]| {
    let mut file = if data.starts_with(b"PAR1") {
        data.to_vec()
    } else {
        WHOLE.clone()
    };
    let is_made = !data.starts_with(b"PAR1");
    for (tag, piece) in pieces(data).take_while(|_| is_made) {
        match piece.split_first_chunk() {
            // From its end, where the metadata is, or from its beginning.
            Some((&[low], piece)) => {
                let place = usize::from(tag & 0x7f) << 8 | usize::from(low);
                let place = if tag < 0x80 {
                    place
                } else {
                    file.len().saturating_sub(place)
                };
                for (byte, other) in file.iter_mut().skip(place).zip(piece) {
                    *byte = *other;
                }
            }
            None => file.truncate(WHOLE.len() * usize::from(tag) / 256),
        }
    }
    reseal(&mut file);
    let length = file.len();
    match Saved::parse(file) {
        Ok(saved) => {
            let rows: usize = saved.samples().iter().map(|sample| sample.rows.len()).sum();
            assert!(rows <= length);
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
});
