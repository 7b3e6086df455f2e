//! Loads of pages that a run has kept, for its report.

use std::path::Path;

use lastbyte::report::study::Findings;
use lastbyte::report::waterfall::Loaded;
use lastbyte::results::{loads_path, read_loads};
use lastbyte::study::BlockId;
use lastbyte_page::cdp::Load;

use super::Failure;

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
                let path = loads_path(folder, study, id, 0);
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
    let loads = read_loads(path)?.unwrap_or_default();
    let mut loads: Vec<Load> = loads.into_iter().filter_map(|one| one.load).collect();
    loads.sort_by_key(|load| load.load);
    let middle = loads.len().saturating_sub(1) / 2;
    Ok((middle < loads.len()).then(|| loads.swap_remove(middle)))
}
