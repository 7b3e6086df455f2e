//! What was seen of a server, and the page that begins with it: a page whose content stays inside, or a line.
#![no_main]

use lastbyte::report::explore::{Probe, page};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let read = Probe::read(text).map_err(|problem| problem.to_string());
    let made = read.and_then(|probe| page(Some(&probe)).map_err(|error| error.to_string()));
    match made {
        Ok(page) => assert_eq!(page.matches("</script>").count(), 3),
        Err(line) => assert!(!line.contains('\n'), "{line}"),
    }
});
