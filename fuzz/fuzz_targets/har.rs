//! A HAR of somebody's page: what is read of it is a page, and as a site it is as large as that.
#![no_main]

use lastbyte_page::{Content, Page, Site, har};
use libfuzzer_sys::fuzz_target;

/// Bodies beyond this take longer to make up than all that is to be found in them.
const MOST: u64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    match har::read(data) {
        Err(problem) => assert_eq!(problem.to_string().lines().count(), 1),
        Ok(read) => {
            assert!(read.notes.iter().all(|note| note.lines().count() == 1));
            site(&read.page);
        }
    }
});

fn site(page: &Page) {
    assert_eq!(Page::new(page.resources().to_vec()).as_ref(), Ok(page));
    if page.bytes().0 > MOST {
        return;
    }
    let site = Site::new(page, Site::usual_name);
    for (answer, resource) in site.answers.iter().zip(page.resources()) {
        if let Content::Body(body) = &answer.content {
            let grown = site
                .grown
                .iter()
                .any(|(place, _)| *place == answer.resource);
            // Of a response whose size was recorded with its fields, the body is what they leave.
            let whole = resource.observed.and_then(|observed| observed.response);
            let length = body.len() as u64;
            assert!(grown || whole.map_or(length == resource.body.0, |whole| length <= whole.0));
        }
    }
}
