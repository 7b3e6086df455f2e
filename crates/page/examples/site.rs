//! Writes the median page of 2024 as a folder: `cargo run -p lastbyte-page --example site -- FOLDER [ORIGINS]`.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use lastbyte_page::{Named, Site};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap();
    let mut model = Named::Median2024.model();
    model.origins = arguments.next().map_or(1, |text| text.parse().unwrap());
    let site = Site::new(&model.page().unwrap(), Site::usual_name);
    println!("grown: {:?}", site.grown);
    site.write(Path::new(&folder)).unwrap();
    assert_eq!(
        Site::read(Path::new(&folder)).unwrap().answers,
        site.answers
    );
}
