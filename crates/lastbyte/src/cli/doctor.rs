//! `lastbyte doctor`.

use std::fmt::Write;

use super::{Failure, print};
use crate::lab::{self, State};

pub(super) fn run() -> Result<(), Failure> {
    let findings = lab::examine(&lab::acquire());
    let mut text = String::new();
    for finding in &findings {
        let (mark, found) = match &finding.state {
            State::Good(found) => ("ok  ", found),
            State::Poor(found) => ("poor", found),
            State::Missing(found) => ("FAIL", found),
        };
        // Writing to a String can't fail.
        let _ = writeln!(text, "{mark}  {:<22} {found}", finding.what);
    }
    let missing = |state: &State| matches!(state, State::Missing(_));
    if findings.iter().any(|finding| missing(&finding.state)) {
        print(&text)?;
        return Err(Failure::Machine(
            "this machine can't run the live engine yet: mend the lines marked FAIL".to_owned(),
        ));
    }
    text.push_str("\nThis machine can run the live engine.\n");
    print(&text)
}
