//! Thresholds as JUnit XML, for what shows the tests of a build.

use std::time::Duration;

use super::escape::xml;
use lastbyte_results::{
    ArmSummary, CellSummary, Environment, Spending, Spent, Summary, Threshold, Validity, Verdict,
};

/// Whether an invalid sample is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Samples {
    /// They must be valid: each is a test case of its own.
    MustBeValid,
    /// An invalid one is a warning.
    AsTheyAre,
}

/// One test suite for each cell, in it one test case for each threshold and each arm that it is
/// about. A threshold that is crossed is a failure, a sample that was not measured an error. The time
/// of a test case is that of the percentile, in seconds.
///
/// Test cases of different suites differ in name or class: some readers know them by nothing else.
pub fn junit(
    summary: &Summary,
    environment: &Environment,
    thresholds: &[Threshold],
    budgets: &[Spending],
    samples: Samples,
) -> String {
    let suites = summary.cells.iter();
    let suites = suites.map(|cell| Suite::new(summary, cell, thresholds, samples));
    let suites: Vec<Suite> = suites.chain(Suite::of_budgets(budgets)).collect();
    written(
        "lastbyte compare",
        &suites,
        &properties(summary, environment),
    )
}

/// What became of budgets alone, one test case for each and each chain: of a command that measures no times.
pub fn budgets_junit(command: &str, budgets: &[Spending]) -> String {
    let suites: Vec<Suite> = Suite::of_budgets(budgets).into_iter().collect();
    written(command, &suites, "")
}

fn written(command: &str, suites: &[Suite], properties: &str) -> String {
    let all = || suites.iter().flat_map(|suite| &suite.cases);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out += &format!("<testsuites name=\"{}\"{}>\n", xml(command), counts(all));
    for suite in suites {
        suite.write(properties, &mut out);
    }
    out + "</testsuites>\n"
}

struct Suite {
    name: String,
    cases: Vec<Case>,
}

struct Case {
    name: String,
    /// The arm.
    class: String,
    time: Duration,
    outcome: Outcome,
}

enum Outcome {
    Passed,
    Doubtful(String),
    Skipped(String),
    Failed(String),
    Broken(String),
}

impl Suite {
    fn new(
        summary: &Summary,
        cell: &CellSummary,
        thresholds: &[Threshold],
        samples: Samples,
    ) -> Suite {
        let mut cases = Vec::new();
        for arm in &summary.experiment.arms {
            match cell.arms.iter().find(|measured| measured.label == arm.name) {
                Some(arm) => cases.extend(cases_of(cell, arm, thresholds, samples)),
                None => cases.push(Case {
                    name: format!("sample{}", cell.place()),
                    class: arm.name.clone(),
                    time: Duration::ZERO,
                    outcome: Outcome::Broken("was not measured".to_owned()),
                }),
            }
        }
        Suite {
            name: cell.cell.to_string(),
            cases,
        }
    }

    /// What chains need; nothing where nothing is bounded.
    fn of_budgets(budgets: &[Spending]) -> Option<Suite> {
        let cases: Vec<Case> = budgets.iter().map(case_of_budget).collect();
        (!cases.is_empty()).then(|| Suite {
            name: "budgets".to_owned(),
            cases,
        })
    }

    fn write(&self, properties: &str, out: &mut String) {
        let name = xml(&self.name);
        let counts = counts(|| self.cases.iter());
        let is_skipped = |case: &&Case| matches!(case.outcome, Outcome::Skipped(_));
        let skipped = self.cases.iter().filter(is_skipped).count();
        *out +=
            &format!("  <testsuite name=\"{name}\"{counts} skipped=\"{skipped}\">\n{properties}");
        for case in &self.cases {
            case.write(out);
        }
        *out += "  </testsuite>\n";
    }
}

fn cases_of(
    cell: &CellSummary,
    arm: &ArmSummary,
    thresholds: &[Threshold],
    samples: Samples,
) -> Vec<Case> {
    let mut cases = Vec::new();
    if samples == Samples::MustBeValid {
        cases.push(Case {
            name: format!("sample{}", cell.place()),
            class: arm.label.clone(),
            time: Duration::ZERO,
            outcome: match &arm.validity {
                Validity::Valid => Outcome::Passed,
                Validity::Invalid(reason) => Outcome::Broken(format!("is invalid: {reason}")),
            },
        });
    }
    for threshold in thresholds {
        let Some(verdict) = threshold.verdict(arm) else {
            continue;
        };
        let measured = arm
            .metric(threshold.metric)
            .percentiles
            .get(&threshold.percentile);
        let time = measured.and_then(|measured| measured.ok());
        cases.push(Case {
            name: format!("{threshold}{}", cell.place()),
            class: arm.label.clone(),
            time: time.map_or(Duration::ZERO, |time| time.value),
            outcome: match verdict {
                Verdict::Kept(_) => Outcome::Passed,
                Verdict::Crossed(what) => Outcome::Failed(what),
                Verdict::Unclear(what) => Outcome::Doubtful(format!("can't tell: {what}")),
                Verdict::Idle(absent) => Outcome::Skipped(absent.to_string()),
            },
        });
    }
    cases
}

fn case_of_budget(spending: &Spending) -> Case {
    Case {
        name: spending.budget.to_string(),
        class: spending.of.clone(),
        time: Duration::ZERO,
        outcome: match &spending.spent {
            Spent::Within(_) => Outcome::Passed,
            Spent::Beyond(what) => Outcome::Failed(what.clone()),
            Spent::Unknown => Outcome::Doubtful("can't tell: it is not known here".to_owned()),
        },
    }
}

impl Case {
    fn write(&self, out: &mut String) {
        let [name, class] = [&self.name, &self.class].map(|text| xml(text));
        let time = self.time.as_secs_f64();
        *out += &format!("    <testcase name=\"{name}\" classname=\"{class}\" time=\"{time:.9}\"");
        let (element, kind, message) = match &self.outcome {
            Outcome::Passed => {
                *out += "/>\n";
                return;
            }
            Outcome::Doubtful(note) => {
                let note = xml(note);
                *out += &format!(">\n      <system-out>{note}</system-out>\n    </testcase>\n");
                return;
            }
            Outcome::Skipped(why) => ("skipped", None, why),
            Outcome::Failed(what) => ("failure", Some("threshold"), what),
            Outcome::Broken(what) => ("error", Some("sample"), what),
        };
        let kind = kind.map_or(String::new(), |kind| format!(" type=\"{kind}\""));
        let message = xml(message);
        *out += &format!(">\n      <{element} message=\"{message}\"{kind}");
        *out += &match element {
            "skipped" => "/>".to_owned(),
            // Some readers show the attribute, others the text.
            _ => format!(">{name}: {class} {message}</{element}>"),
        };
        *out += "\n    </testcase>\n";
    }
}

/// How many cases there are and how they ended, as attributes.
fn counts<'a, I: Iterator<Item = &'a Case>>(cases: impl Fn() -> I) -> String {
    let count = |is: fn(&Outcome) -> bool| cases().filter(|case| is(&case.outcome)).count();
    format!(
        " tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.9}\"",
        cases().count(),
        count(|outcome| matches!(outcome, Outcome::Failed(_))),
        count(|outcome| matches!(outcome, Outcome::Broken(_))),
        cases()
            .map(|case| case.time)
            .sum::<Duration>()
            .as_secs_f64(),
    )
}

/// All that someone else needs to get the results again.
fn properties(summary: &Summary, environment: &Environment) -> String {
    let mut properties = vec![
        ("command".to_owned(), environment.command_line()),
        ("engine".to_owned(), environment.engine.to_string()),
        ("kernel".to_owned(), environment.kernel.clone()),
        ("seed".to_owned(), summary.experiment.seed.0.to_string()),
    ];
    let since = summary.since.iter();
    properties.extend(since.map(|since| ("since".to_owned(), since.to_string())));
    let versions = environment.versions.iter();
    properties
        .extend(versions.map(|(name, version)| (format!("version of {name}"), version.clone())));
    let mut out = String::from("    <properties>\n");
    for (name, value) in properties {
        let [name, value] = [name, value].map(|text| xml(&text));
        out += &format!("      <property name=\"{name}\" value=\"{value}\"/>\n");
    }
    out + "    </properties>\n"
}

#[cfg(test)]
mod tests;
