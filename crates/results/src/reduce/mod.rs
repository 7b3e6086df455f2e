//! Every way to send less than a whole chain, in one table: which arms show it, what its clients must hold, and what
//! measured samples tell of it. Measuring is others' work.

mod by;
mod reduction;
mod table;
#[cfg(test)]
mod tests;

pub use self::by::By;
pub use self::reduction::{Had, Holds, Reduction, Subject, Unavailable};
pub use self::table::{Clients, Cpu, Ranked, Table};

use lastbyte_study::Arm;

/// What is measured of a chain.
#[derive(Clone, Debug)]
pub struct Reduce {
    /// The chain, whole: one for each stack that a way needs, that of the question first.
    pub whole: Vec<Arm>,
    /// Ways to send less.
    pub ways: Vec<Way>,
    /// Ways that can't be had, with the reason.
    pub unavailable: Vec<(&'static Reduction, String)>,
}

/// One way to send less, for one chain.
#[derive(Clone, Debug)]
pub struct Way {
    /// Which.
    pub reduction: &'static Reduction,
    /// What it is compared with, among [`Reduce::whole`]: the whole chain, on the same stacks.
    pub whole: usize,
    /// The arm.
    pub arm: Arm,
    /// The arm whose clients lack what they should hold, if that can be.
    pub stale: Option<Arm>,
}

impl Reduce {
    /// All ways for a chain that is sent whole by this arm.
    pub fn new(arm: &Arm) -> Reduce {
        let mut reduce = Reduce {
            whole: vec![arm.clone()],
            ways: Vec::new(),
            unavailable: Vec::new(),
        };
        for reduction in Reduction::ALL {
            if let Err(reason) = reduce.add(reduction) {
                reduce.unavailable.push((reduction, reason.to_string()));
            }
        }
        reduce
    }

    fn add(&mut self, reduction: &'static Reduction) -> Result<(), Unavailable> {
        let Some(own) = self.whole.first() else {
            return Ok(());
        };
        let whole = reduction.whole(own)?;
        let (arm, stale) = (reduction.apply(&whole)?, reduction.stale(&whole)?);
        let known = self.whole.iter().position(|arm| arm.label == whole.label);
        let whole = known.unwrap_or_else(|| {
            self.whole.push(whole);
            self.whole.len() - 1
        });
        self.ways.push(Way {
            reduction,
            whole,
            arm,
            stale,
        });
        Ok(())
    }

    /// Leaves out ways of which `problem` knows one: of an arm of theirs, or of what they are compared with.
    pub fn leave_out(&mut self, mut problem: impl FnMut(&Arm) -> Option<String>) {
        let (whole, unavailable) = (&self.whole, &mut self.unavailable);
        self.ways.retain(|way| {
            let arms = [whole.get(way.whole), Some(&way.arm), way.stale.as_ref()];
            match arms.into_iter().flatten().find_map(&mut problem) {
                None => true,
                Some(reason) => {
                    unavailable.push((way.reduction, reason));
                    false
                }
            }
        });
    }

    /// All arms that are measured, each once.
    pub fn arms(&self) -> Vec<Arm> {
        let whole = self.whole.iter().enumerate().filter(|(place, _)| {
            // The question's own, and those that something is compared with.
            *place == 0 || self.ways.iter().any(|way| way.whole == *place)
        });
        let ways = self.ways.iter();
        let ways = ways.flat_map(|way| [Some(&way.arm), way.stale.as_ref()]);
        let mut arms: Vec<Arm> = Vec::new();
        for arm in whole.map(|(_, arm)| arm).chain(ways.flatten()) {
            if !arms.iter().any(|known| known.label == arm.label) {
                arms.push(arm.clone());
            }
        }
        arms
    }
}
