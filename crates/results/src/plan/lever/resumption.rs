//! More connections that resume.

use super::{Lever, with_arm, with_key};

pub(super) static LEVER: Lever = Lever {
    name: "resumption",
    doc: "more connections that resume a session, and so need no certificates: a review of arXiv 2604.24869 tells of \
          94 % of TLS 1.3 connections at CDNs, and of 46 % elsewhere (secondary source, 2026)",
    pull: |setting, amounts| {
        with_arm(
            setting,
            &with_key(&setting.arm.label, "resume", &amounts.resumes.to_string()),
        )
    },
    words: |amounts| format!("{} resume", amounts.resumes),
};
