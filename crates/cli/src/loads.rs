//! Loads of pages that a run has kept, for its report.

use std::io;
use std::path::Path;

use lastbyte::lab::{self, capture_name};
use lastbyte::report::study::Findings;
use lastbyte::report::waterfall::Loaded;
use lastbyte::study::BlockId;
use lastbyte_page::cdp::Load;

use super::Failure;

/// More than the loads of any block take.
const MOST: u64 = 256 << 20;

/// A usual load of each arm, in the first cell of which `folder` has any: that with the median time to the load event.
pub(super) fn usual(findings: &Findings, folder: &Path) -> Result<Vec<Loaded>, Failure> {
    let study = &findings.study;
    for (measure, described) in study.measures.iter().enumerate() {
        let experiment = &described.experiment;
        for cell in 0..experiment.cells.len() {
            let mut found = Vec::new();
            for (arm, of) in experiment.arms.iter().enumerate() {
                let id = BlockId {
                    measure,
                    cell,
                    block: 0,
                    arm,
                };
                let path = folder
                    .join(capture_name(study, id, 0))
                    .with_extension("json");
                if let Some(load) = median(&path)? {
                    let name = of.name.clone();
                    found.push(Loaded { name, load });
                }
            }
            if !found.is_empty() {
                return Ok(found);
            }
        }
    }
    Ok(Vec::new())
}

/// The median load of a file; none if it is not there, or no load was whole.
fn median(path: &Path) -> Result<Option<Load>, Failure> {
    let failed =
        |problem: String| Failure::run(format!("can't read \"{}\": {problem}", path.display()));
    let bytes = match lastbyte_files::read(path, MOST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| failed(error.to_string()))?,
    };
    let loads: Vec<lab::Loaded> =
        serde_json::from_slice(&bytes).map_err(|error| failed(error.to_string()))?;
    let mut loads: Vec<_> = loads.into_iter().filter_map(|one| one.load).collect();
    loads.sort_by_key(|load| load.load);
    let middle = loads.len().saturating_sub(1) / 2;
    Ok((middle < loads.len()).then(|| loads.swap_remove(middle)))
}
