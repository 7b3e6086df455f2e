//! More connections that resume.

use super::{About, Asks, Kind, Lever, Unpulled, with};
use lastbyte_study::Sessions;

pub(super) const LEVER: Lever = Lever {
    name: "resumption",
    doc: "more connections that resume a session, and so need no certificates: a review of arXiv 2604.24869 tells of \
          94 % of TLS 1.3 connections at CDNs, and of 46 % elsewhere (secondary source, 2026)",
    about: About::Certificates,
    kind: Kind::Own {
        pull: |setting, amounts| {
            let target = amounts.resumes;
            let already = |share: f64| Err(Unpulled::ResumesAlready(share));
            match setting.arm.sessions {
                Sessions::Fixed => Err(Unpulled::OneWay),
                Sessions::Share { resumes, .. } if resumes >= target => already(resumes.fraction()),
                Sessions::Share { .. } => with(setting, "resume", &target.to_string()),
                Sessions::Population => {
                    let population = setting.cell.population.as_ref();
                    let most = population.and_then(|population| population.most_that_resume());
                    match most.filter(|most| *most >= target.fraction()) {
                        Some(most) => already(most),
                        None => setting
                            .drawing(|population| population.resumes_least = Some(target))
                            .ok_or(Unpulled::NothingDrawn),
                    }
                }
            }
        },
        words: |_, amounts| format!("resumption by {}", amounts.resumes),
        asks: Asks::Server,
    },
};
