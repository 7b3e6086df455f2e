//! Loads the median page of 2024 in this machine's Chromium, from servers on this machine, and says what came of it:
//!
//!     cargo run -p lastbyte-page --example load -- [ORIGINS] [warm]
#![allow(clippy::unwrap_used)]

#[path = "../tests/chromium/driver.rs"]
mod driver;

use std::time::Duration;

use lastbyte_page::cdp::{Cache, Frames, Tasks, Visit};
use lastbyte_page::{Named, Site};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut model = Named::Median2024.model();
    if let Some(origins) = arguments.first() {
        model.origins = origins.parse().unwrap();
    }
    let page = model.page().unwrap();
    let listeners = driver::listen(page.origins());
    let names = driver::names(&listeners, Site::usual_name);
    let site = Site::new(&page, |origin| names[usize::from(origin)].clone());
    let url = format!("http:{}", site.document());
    driver::serve(listeners, site);
    let cache = match arguments.get(1) {
        None => Cache::Cold,
        Some(_) => Cache::Warm {
            pause: Duration::from_secs(1),
        },
    };
    let mut chromium = driver::Chromium::start(&[]);
    for _ in 0..2 {
        let began = std::time::Instant::now();
        let load = chromium.visit(Visit {
            url: url.clone(),
            cache,
            frames: Frames::All,
            tasks: Tasks::Traced,
            slowdown: 1,
            timeout: Duration::from_secs(30),
            quiet: Duration::from_millis(500),
            patience: Duration::from_secs(30),
        });
        match load {
            Err(failure) => println!("{failure}"),
            Ok(load) => {
                println!(
                    "{}: connect {:?}, TTFB {:?}, FCP {:?}, LCP {:?}, load {:?}, Speed Index {:?}; {} requests, {} connections, {} bytes; {:?} in all",
                    load.browser,
                    load.connect,
                    load.ttfb,
                    load.fcp,
                    load.lcp,
                    load.load,
                    load.speed_index,
                    load.requests.len(),
                    load.connections.len(),
                    load.wire().0,
                    began.elapsed()
                );
                for request in &load.requests {
                    println!(
                        "{:>10.1?} {:>10.1?} {:>10.1?} {:>10} {:<9} {:?} {} in {} {} {}",
                        request.start,
                        request.first_byte.unwrap_or_default(),
                        request.end.unwrap_or_default(),
                        request.wire.0,
                        request.kind.map_or("?", |kind| kind.name()),
                        request.source,
                        request.url,
                        request.found_in.as_deref().unwrap_or("-"),
                        request.priority,
                        request.failure.as_deref().unwrap_or("")
                    );
                }
                for frame in &load.frames {
                    println!("{frame:?}");
                }
                for one in &load.connections {
                    println!("{one:?}");
                }
            }
        }
    }
}
