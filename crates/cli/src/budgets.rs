//! What a chain may need (`--fail-if 'flights > 1'`), for commands that measure no percentiles, and beside thresholds where they
//! are measured.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use lastbyte::explain::Explanation;
use lastbyte::report::budgets_junit;
use lastbyte::results::{Budget, BudgetError, Facts, Need, Spending, Spent, Threshold};
use lastbyte::study::Experiment;
use lastbyte_exchange::HandshakeFlight;
use lastbyte_link::counted;
use lastbyte_sizes::Message;

use super::draft::Draft;
use super::{Failure, own, tell};

/// Budgets, and what became of them in a file.
#[derive(Debug, Args)]
pub(super) struct Budgets {
    /// Exit with 99 if a chain needs more: `flights > 1`, `left < 500B`, `certificate > 16KB`, `server > 20KB`; of `plan` also
    /// `waiting > 1%` (of connections, more than 20 ms longer) and `mean > 5ms`
    #[arg(long, value_name = "BUDGET", value_delimiter = ',')]
    fail_if: Vec<Budget>,
    /// Write what became of the budgets as JUnit XML
    #[arg(long, value_name = "FILE", requires = "fail_if")]
    junit: Option<PathBuf>,
}

/// What a command knows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Chains,
    Populations,
}

/// Budgets whose file can be written.
pub(super) struct Judge<'a> {
    budgets: &'a [Budget],
    junit: Option<Draft<'a>>,
}

impl Budgets {
    /// Before anything is found out, so that nothing of it is lost where the file can't be written: of chains alone, or of
    /// populations too.
    pub(super) fn begin(&self, of: Subject) -> Result<Judge<'_>, Failure> {
        if of == Subject::Chains {
            let budgets = self.fail_if.iter();
            let needs = budgets.map(|budget| of_chain(budget.need));
            needs
                .collect::<Result<Vec<()>, _>>()
                .map_err(Failure::Usage)?;
        }
        Ok(Judge {
            budgets: &self.fail_if,
            junit: self.junit.as_deref().map(Draft::new).transpose()?,
        })
    }
}

impl Judge<'_> {
    /// Holds what is known against them, when all else has been printed: `command` is what it is known by.
    pub(super) fn judge(self, command: &str, known: &[Facts]) -> Result<(), Failure> {
        let spending = Spending::all(self.budgets, known);
        if let Some(draft) = self.junit {
            let junit = budgets_junit(command, &spending);
            draft.write(|out| out.write_all(junit.as_bytes()))?;
        }
        judge(&spending)
    }
}

/// Makes sure that a chain alone has such a need.
fn of_chain(need: Need) -> Result<(), String> {
    match need {
        Need::Waiting | Need::Mean => Err(format!(
            "{need} is of `lastbyte plan`, which asks whole populations"
        )),
        Need::Flights | Need::Left | Need::Certificate | Need::Server => Ok(()),
    }
}

/// Prints what came of each budget.
///
/// # Errors
///
/// If anything is.
pub(super) fn judge(spending: &[Spending]) -> Result<(), Failure> {
    const NAMED: usize = 8;
    let mut judged = Ok(());
    let within = spending.iter();
    let within = within.filter(|spending| matches!(spending.spent, Spent::Within(_)));
    let within = within.count();
    let is_named = within <= NAMED;
    if !is_named {
        tell(format_args!(
            "within budget: {within} of {}",
            counted(spending.len(), "need")
        ));
    }
    for Spending { budget, of, spent } in spending {
        match spent {
            Spent::Within(what) if is_named => {
                let need = budget.need;
                tell(format_args!(
                    "within budget: {need} of {of} {what} (fails if {budget})"
                ));
            }
            Spent::Within(_) => {}
            Spent::Unknown => tell(format_args!(
                "can't tell: {budget}: it is not known of {of}"
            )),
            Spent::Beyond(what) => {
                tell(format_args!("budget exceeded: {budget}: {of} {what}"));
                judged = Err(Failure::Threshold);
            }
        }
    }
    judged
}

/// What a chain needs of one window, in the units of budgets: what is not known is not there.
pub(super) fn needs(
    flights: usize,
    left: Option<usize>,
    certificate: usize,
    server: usize,
) -> BTreeMap<Need, f64> {
    let needs = [
        (Need::Flights, Some(flights)),
        (Need::Left, left),
        (Need::Certificate, Some(certificate)),
        (Need::Server, Some(server)),
    ];
    let known = needs.into_iter();
    let known = known.filter_map(|(need, value)| Some((need, value? as f64)));
    known.collect()
}

/// What arithmetic knows of an arm, for each window that was asked for.
pub(super) fn facts(explained: &Explanation) -> Vec<Facts> {
    let wire = &explained.exchange;
    let windows = explained.windows.iter();
    let known = windows.map(|window| Facts {
        of: explained.arm.name.clone(),
        place: match explained.windows.len() {
            1 => String::new(),
            _ => format!(" with initcwnd {}", window.cell.initcwnd),
        },
        needs: needs(
            window.edges.flights,
            window.edges.above.map(|edge| edge.certificate_distance),
            wire.bytes(Message::Certificate) as usize,
            wire.carried(HandshakeFlight::Server) as usize,
        ),
    });
    known.collect()
}

/// The same of all arms of an experiment, as far as arithmetic knows them: of a chain in a file, by its sizes.
pub(super) fn facts_of(experiment: &Experiment) -> Vec<Facts> {
    let cells = experiment.transfers();
    let arms = experiment.arms.iter();
    let known = arms.flat_map(|arm| match own::explained(arm, &cells) {
        Ok((explained, _)) => facts(&explained),
        Err(_) => vec![Facts {
            of: arm.name.clone(),
            ..Facts::default()
        }],
    });
    known.collect()
}

/// What makes a comparison fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit {
    /// A percentile that was measured.
    Threshold(Threshold),
    /// What a chain needs.
    Budget(Budget),
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Limit, String> {
        match text.parse::<Budget>() {
            Ok(budget) => of_chain(budget.need).map(|()| Limit::Budget(budget)),
            Err(BudgetError { problem, .. }) if is_need(text) => Err(problem.to_string()),
            Err(_) => {
                let threshold = text.parse::<Threshold>();
                let threshold = threshold.map_err(|error| error.to_string())?;
                Ok(Limit::Threshold(threshold))
            }
        }
    }
}

/// Whether it begins as a budget does.
fn is_need(text: &str) -> bool {
    let word = text.split(['<', '>', '=', ' ']).next().unwrap_or_default();
    Need::ALL.iter().any(|need| need.name() == word)
}
