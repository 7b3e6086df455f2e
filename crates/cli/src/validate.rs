//! `lastbyte validate`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum};

use super::draft::Draft;
use super::{Failure, print, print_document, print_json, screen, tell};
use lastbyte::report;
use lastbyte::results::{Percent, Percentile};
use lastbyte::validate::{Margin, Margins, Results, Validation, Verdict, validate};

/// Compares two sets of results, arm by arm and cell by cell, whatever their engines. A difference
/// is held against a margin that is stated beforehand: it agrees when its whole interval is within
/// it, differs when it is outside, and is undecided otherwise. Exits with 1 if anything differs.
#[derive(Debug, Args)]
pub(super) struct Validate {
    /// A folder of `lastbyte run`, rows of `lastbyte compare -o rows.parquet`, or `arithmetic`
    #[arg(value_name = "DIR_A")]
    a: Source,
    /// What is compared with it. With `arithmetic`, cells without loss and jitter are compared with
    /// flight arithmetic
    #[arg(value_name = "DIR_B")]
    b: Source,
    /// How far percentiles may differ, in percent of A's [default: p50=0.5%,p90=2%; with
    /// arithmetic, p50=0.1%,p75=0.1%,p90=0.1%]
    #[arg(long, value_name = "MARGINS", value_delimiter = ',')]
    margin: Vec<Margin>,
    /// The same for cells with loss [default: p50=3%,p75=5%]
    #[arg(long, value_name = "MARGINS", value_delimiter = ',')]
    loss_margin: Vec<Margin>,
    /// How results are printed
    #[arg(long, default_value = "table")]
    format: Format,
    /// Write a page with a Q-Q plot of each sample
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<Page>,
    /// Exit with 1 also if anything is undecided
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Table,
    Json,
    Markdown,
}

/// What is compared.
#[derive(Clone, Debug)]
enum Source {
    Results(PathBuf),
    Arithmetic,
}

impl FromStr for Source {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Source, Self::Err> {
        Ok(match text {
            "arithmetic" => Source::Arithmetic,
            path => Source::Results(path.into()),
        })
    }
}

/// Where to write a page.
#[derive(Clone, Debug)]
struct Page(PathBuf);

impl FromStr for Page {
    type Err = String;

    fn from_str(text: &str) -> Result<Page, String> {
        let path = PathBuf::from(text);
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("html") => Ok(Page(path)),
            _ => Err("name it .html".to_owned()),
        }
    }
}

impl Validate {
    pub(super) fn run(self) -> Result<(), Failure> {
        let margins = self.margins()?;
        let open = |path: &Path| Results::open(path).map_err(Failure::usage);
        let [a, b] = match (&self.a, &self.b) {
            (Source::Arithmetic, Source::Arithmetic) => {
                return Err(Failure::Usage(
                    "arithmetic agrees with itself: name a folder of results".to_owned(),
                ));
            }
            (Source::Results(a), Source::Results(b)) => [open(a)?, open(b)?],
            (Source::Results(a), Source::Arithmetic) => {
                let a = open(a)?;
                let b = a.arithmetic();
                [a, b]
            }
            (Source::Arithmetic, Source::Results(b)) => {
                let b = open(b)?;
                [b.arithmetic(), b]
            }
        };
        let validation = validate(&a, &b, margins).map_err(Failure::usage)?;
        if let Some(Page(path)) = &self.output {
            let page = report::validation::page(&validation);
            Draft::new(path)?.write(|out| out.write_all(page.as_bytes()))?;
            // Standard output may be a document's.
            tell(format_args!("wrote {}", path.display()));
        }
        match self.format {
            Format::Table => print(&report::validation::table(&validation, screen())),
            Format::Json => print_json(&report::validation::json(&validation)),
            Format::Markdown => print_document(&report::validation::markdown(&validation)),
        }?;
        self.verdict(&validation)
    }

    fn margins(&self) -> Result<Margins, Failure> {
        let arithmetic =
            matches!(self.a, Source::Arithmetic) || matches!(self.b, Source::Arithmetic);
        let usual = |margins: &[(u8, f64)]| -> Vec<Margin> {
            let margin = |(percentile, most): &(u8, f64)| {
                Some(Margin {
                    percentile: Percentile::new(*percentile)?,
                    most: Percent(*most),
                })
            };
            margins.iter().filter_map(margin).collect()
        };
        let given = |margins: &[Margin], or: &[(u8, f64)]| match margins {
            [] => usual(or),
            margins => margins.to_vec(),
        };
        let margins = Margins {
            without_loss: if arithmetic {
                given(&self.margin, &[(50, 0.1), (75, 0.1), (90, 0.1)])
            } else {
                given(&self.margin, &[(50, 0.5), (90, 2.0)])
            },
            with_loss: given(&self.loss_margin, &[(50, 3.0), (75, 5.0)]),
        };
        for margins in [&margins.without_loss, &margins.with_loss] {
            for (index, margin) in margins.iter().enumerate() {
                let percentile = margin.percentile;
                if margins
                    .iter()
                    .skip(index + 1)
                    .any(|other| other.percentile == percentile)
                {
                    return Err(Failure::Usage(format!(
                        "margin of {percentile} is given twice: name each once"
                    )));
                }
            }
        }
        Ok(margins)
    }

    fn verdict(&self, validation: &Validation) -> Result<(), Failure> {
        let verdicts = || validation.verdicts();
        let all = validation.comparisons;
        match validation.verdict() {
            Verdict::Agrees => Ok(()),
            Verdict::Differs => {
                let differ = verdicts().filter(|verdict| *verdict == Verdict::Differs);
                Err(Failure::Run(format!(
                    "{} of {all} comparisons differ",
                    differ.count()
                )))
            }
            Verdict::Undecided { .. } => {
                let undecided = verdicts().filter(|verdict| *verdict != Verdict::Agrees);
                let undecided = format!("{} of {all} comparisons are undecided", undecided.count());
                if self.strict {
                    return Err(Failure::Run(undecided));
                }
                tell(format_args!("warning: {undecided}"));
                Ok(())
            }
        }
    }
}
