//! What a browser says on its debugging pipe, a message a line; `+N` has N milliseconds pass. Whatever it is, a visit
//! has an outcome, and a load is a HAR.
#![no_main]

use std::time::Duration;

use lastbyte_page::cdp::{Browser, Cache, Frames, Tasks, Visit};
use lastbyte_page::har;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // How the bytes are cut.
    let Some((&[piece, cache], data)) = data.split_first_chunk() else {
        return;
    };
    let mut browser = Browser::new();
    let mut now = Duration::from_secs(1);
    let cache = match cache {
        b'w' => Cache::Warm {
            pause: Duration::from_secs(1),
        },
        _ => Cache::Cold,
    };
    let visit = Visit {
        url: "https://o0.page.example/".to_owned(),
        cache,
        tasks: Tasks::Traced,
        slowdown: 1,
        frames: Frames::All,
        timeout: Duration::from_secs(30),
        quiet: Duration::from_millis(500),
        patience: Duration::from_secs(10),
    };
    browser.begin(visit, now);
    for line in data.split(|byte| *byte == b'\n') {
        if let [b'+', millis @ ..] = line {
            let millis = std::str::from_utf8(millis)
                .ok()
                .and_then(|text| text.parse::<u16>().ok());
            now += Duration::from_millis(millis.unwrap_or(0).into());
            browser.tick(now);
            continue;
        }
        let message = [line, &[0]].concat();
        for piece in message.chunks(usize::from(piece) * 16 + 1) {
            browser.receive(piece, now);
        }
        browser.outgoing();
    }
    for _ in 0..100 {
        match browser.wake() {
            Some(wake) => browser.tick(wake),
            None => break,
        }
    }
    let outcome = browser
        .outcome()
        .expect("nothing is waited for, and there is no outcome");
    if let Ok(load) = outcome {
        let one = har::Titled {
            title: "one",
            load: &load,
        };
        if let Err(problem) = har::read(har::write(&[one]).as_bytes()) {
            // Whatever a browser says it has loaded, a HAR of it has that form.
            assert!(
                !matches!(
                    problem,
                    har::HarError::Form { .. } | har::HarError::CutOff { .. }
                ),
                "{problem}"
            );
        }
    }
});
