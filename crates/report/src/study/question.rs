//! What a study asks.

use super::findings::Findings;
use super::overview::Overview;

/// The question that a page, a picture and the terminal answer.
pub(super) fn question(findings: &Findings, overview: Option<&Overview>) -> String {
    let study = &findings.study;
    let asked = study.question.clone();
    let asked = asked.or_else(|| Some(overview?.question()));
    asked.unwrap_or_else(|| match study.arms().as_slice() {
        [arm] => format!("How long does {} take?", arm.name),
        _ if !study.searches.is_empty() => {
            "At which sizes does a chain cost a round trip?".to_owned()
        }
        _ => study.name.clone(),
    })
}
