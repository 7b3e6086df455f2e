//! What a chain will cost the users of a site, and what would win it back: which settings to measure, and what
//! their connections tell of each other. Measuring is others' work.

mod arithmetic;
mod because;
mod lever;
mod tale;
#[cfg(test)]
mod tests;
mod transports;
mod usual;

use std::sync::Arc;

pub use self::arithmetic::{Arithmetic, Calculated, OnWire, calculated};
pub use self::because::{Because, Cause};
pub use self::lever::{About, Amounts, Lever, Unpulled};
pub use self::tale::{Gain, NOTICEABLE, Tale};
pub use self::transports::{Transports, Unmixed};
pub use self::usual::{USUAL, Usual, path as usual_path, population as usual_population};
use lastbyte_results::{Row, Sample};
use lastbyte_study::{Arm, Cell, Population};

/// Something that can be measured: an arm in a cell that draws from a population.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What it is called.
    pub name: String,
    /// The arm.
    pub arm: Arm,
    /// The cell.
    pub cell: Cell,
}

/// What is measured, and why.
#[derive(Clone, Debug)]
pub struct Plan {
    /// As it is today.
    pub today: Setting,
    /// With the chain that is planned.
    pub planned: Setting,
    /// What is planned, with one lever pulled.
    pub levers: Vec<(&'static Lever, Setting)>,
    /// Levers that can't be pulled, with the reason.
    pub unavailable: Vec<(&'static Lever, String)>,
    /// How far levers are pulled.
    pub amounts: Amounts,
}

/// The connections of a setting.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The setting.
    pub setting: Setting,
    /// Its connections, by index.
    pub rows: Vec<Row>,
}

impl Measured {
    /// The sample of a setting.
    pub fn new(setting: Setting, sample: Sample) -> Measured {
        Measured {
            setting,
            rows: sample.rows,
        }
    }
}

impl Plan {
    /// What there is to measure when `planned` takes the place of `today`.
    pub fn new(today: Arm, planned: Arm, cell: Cell, amounts: Amounts) -> Plan {
        let setting = |name: &str, arm| Setting {
            name: name.to_owned(),
            arm,
            cell: cell.clone(),
        };
        let today = setting("today", today);
        let planned = setting("planned", planned);
        let mut plan = Plan {
            today,
            planned,
            levers: Vec::new(),
            unavailable: Vec::new(),
            amounts,
        };
        for lever in Lever::all() {
            match lever.pull(&plan.planned, &plan.amounts) {
                Ok(pulled) => plan.levers.push((lever, pulled)),
                Err(reason) => plan.unavailable.push((lever, reason.to_string())),
            }
        }
        plan
    }

    /// Leaves out levers of which `problem` knows one.
    pub fn leave_out(&mut self, problem: impl Fn(&Setting) -> Option<String>) {
        let unavailable = &mut self.unavailable;
        self.levers
            .retain(|(lever, setting)| match problem(setting) {
                None => true,
                Some(reason) => {
                    unavailable.push((lever, reason));
                    false
                }
            });
    }

    /// What is to be measured first: today, as planned, and each lever alone.
    pub fn alone(&self) -> Vec<Setting> {
        let levers = self.levers.iter().map(|(_, setting)| setting.clone());
        [self.today.clone(), self.planned.clone()]
            .into_iter()
            .chain(levers)
            .collect()
    }

    /// What is to be measured then: levers together, in this order, from two on. A lever that can't be pulled
    /// after others is left out.
    pub fn together(&self, order: &[&'static Lever]) -> Vec<Setting> {
        let mut pulled = self.planned.clone();
        let mut names: Vec<&str> = Vec::new();
        let mut settings = Vec::new();
        for lever in order {
            let Ok(next) = lever.pull(&pulled, &self.amounts) else {
                continue;
            };
            names.push(lever.name);
            pulled = Setting {
                name: names.join(" + "),
                ..next
            };
            if names.len() > 1 {
                settings.push(pulled.clone());
            }
        }
        settings
    }
}

/// Settings that share a cell, in the order of first appearance: each group is one experiment.
pub fn by_cell(settings: &[Setting]) -> Vec<(Cell, Vec<Setting>)> {
    let keyed = settings.iter().cloned();
    lastbyte_results::group_by(keyed, |setting| setting.cell.clone())
}

impl Setting {
    /// The same with another population.
    fn drawing(&self, change: impl FnOnce(&mut Population)) -> Option<Setting> {
        let mut population = (**self.cell.population.as_ref()?).clone();
        change(&mut population);
        Some(Setting {
            cell: Cell {
                population: Some(Arc::new(population)),
                ..self.cell.clone()
            },
            ..self.clone()
        })
    }
}
